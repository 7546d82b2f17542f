#include "procfs/cpu_room.h"

#include <sched.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "procfs/control_groups.h"
#include "procfs/text_scan.h"

namespace mprun {
namespace {

constexpr int kMostCpus = 1 << 16;

/// CPUs that we may run on; the kernel wants a set as large as its own, and does not say how large that is.
int affinity() {
  for (int size = CPU_SETSIZE; size <= kMostCpus; size *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(size), [](cpu_set_t* of) { CPU_FREE(of); });
    if (set != nullptr && sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return 1;
}

/// Microseconds of CPU time in a period, as "200000 100000" of version 2, or in two files of version 1. None: "max",
/// -1.
std::optional<std::uint64_t> cpus_paid_for(const ControlGroup& group, const std::string& name) {
  const std::string folder = group.folder + name;
  const std::string text =
      group.unified ? file_contents(folder + "/cpu.max")
                    : file_contents(folder + "/cpu.cfs_quota_us") + " " + file_contents(folder + "/cpu.cfs_period_us");
  std::uint64_t quota = 0, period = 0;
  std::string words = text;
  for (char& c : words) c = c == '\n' ? ' ' : c;
  TextScan scan(words);
  if (!scan.number(&quota) || !scan.number(&period) || quota == 0 || period == 0) return std::nullopt;
  return (quota - 1) / period + 1;
}

}  // namespace

CpuRoom cpu_room(const std::string& root) {
  CpuRoom room{affinity(), "the CPU affinity"};
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    for (const std::string& name : group_and_those_around(group)) {
      const auto cpus = cpus_paid_for(group, name);
      if (!cpus || *cpus >= static_cast<std::uint64_t>(room.cpus)) continue;
      room = {static_cast<int>(*cpus), "the CPU quota of the control group " + group_text(name)};
    }
  }
  return room;
}

}  // namespace mprun
