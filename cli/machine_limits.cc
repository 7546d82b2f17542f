// How many CPUs, processes and files and how much memory jobs can have here.
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "json/words.h"
#include "machine.h"
#include "os/process.h"
#include "placement/placement.h"
#include "placement/processors_text.h"
#include "placement/topology.h"
#include "procfs/control_groups.h"
#include "procfs/cpu_room.h"
#include "procfs/memory_room.h"
#include "run/open_files.h"

namespace mprun {
namespace {

// Jobs with fewer workers are common.
constexpr std::uint64_t kManyWorkers = 512;
constexpr std::uint64_t kSmallSharedMemory = std::uint64_t{1} << 30U;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::string limit_text(std::uint64_t limit) { return limit == kUnlimited ? "unlimited" : std::to_string(limit); }

MachineFeature cpus() {
  const CpuRoom room = cpu_room();
  const std::string number = std::to_string(room.cpus);
  return {"CPUs",
          true,
          false,
          number,
          "workers by default (" + room.source + ")",
          number +
              (room.cpus == 1 ? " CPU: more busy workers than that make" : " CPUs: more busy workers than these make") +
              " no job faster"};
}

std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

MachineFeature cores() {
  const auto topology = read_topology();
  if (!topology) return {"cores", false, false, "not known", topology.error().message, ""};
  return {"cores",
          true,
          false,
          counted(topology->cores.size(), "core") + ", " +
              counted(static_cast<std::size_t>(topology->packages()), "package") + ", " +
              counted(static_cast<std::size_t>(topology->nodes()), "memory node"),
          "what \"binding\" binds workers to",
          ""};
}

MachineFeature memory() {
  const MemoryRoom room = memory_room();
  if (room.bytes == kUnlimited) return {"memory", true, false, "not known", "", ""};
  const std::string size = size_text(room.bytes);
  return {"memory",
          true,
          false,
          size,
          "can still be used (" + room.source + ")",
          size + " of memory for all workers together: limits.memory_per_worker ends those that take too much"};
}

MachineFeature shared_memory() {
  constexpr const char* kFolder = "/dev/shm";
  MachineFeature feature{kFolder, true, false, "not there", "what programs share through it: torch, multiprocessing",
                         ""};
  struct statvfs found {};
  if (statvfs(kFolder, &found) != 0) {
    feature.limit = "no /dev/shm: programs that share tensors or locks through it fail";
    return feature;
  }
  if (access(kFolder, W_OK | X_OK) != 0) {
    feature.value = "cannot be written to";
    feature.limit = "nothing can be made in /dev/shm: programs that share tensors or locks through it fail";
    return feature;
  }
  const std::uint64_t bytes = std::uint64_t{found.f_bavail} * found.f_frsize;
  feature.value = size_text(bytes) + " free";
  if (bytes < kSmallSharedMemory) {
    feature.limit =
        "only " + size_text(bytes) +
        " in /dev/shm: workers of torch.multiprocessing that share more die of SIGBUS; containers get more by "
        "--shm-size";
  }
  return feature;
}

/// The word in brackets of a setting in /sys such as "always within_size [advise] never".
std::string chosen_state(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  return begin != text.npos && end != text.npos && begin < end ? text.substr(begin + 1, end - begin - 1) : "not known";
}

MachineFeature huge_pages() {
  constexpr const char* kFile = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  const std::string state = chosen_state(file_contents(kFile));
  const HugePagePool pool = huge_page_pool();
  MachineFeature feature{"huge pages", true, false, state, "", ""};
  if (pool.page_bytes != 0) {
    feature.value += "; " + std::to_string(pool.free) + " free of " + size_text(pool.page_bytes) + " in the pool";
  }
  if (state == "not known") {
    feature.use = "this kernel offers none for shared memory by itself";
  } else if (state == "never" || state == "deny") {
    feature.use = std::string("for shared tensors, if root allows them: echo advise > ") + kFile;
  } else {
    feature.use = "shared tensors are in huge pages: fewer faults, faster access";
  }
  if (pool.free > 0) feature.use += "; \"huge_pages\": \"hugetlb\" takes them from the pool";
  return feature;
}

MachineFeature open_files() {
  const rlimit limit = limits_of(RLIMIT_NOFILE);
  MachineFeature feature{"open files",
                         true,
                         false,
                         limit_text(limit.rlim_cur) + " of " + limit_text(limit.rlim_max),
                         "mprun raises its own limit to the second number",
                         ""};
  const std::uint64_t workers = most_workers(limit.rlim_max);
  if (workers < kManyWorkers) {
    feature.limit =
        "open files are enough for " + std::to_string(workers) + " workers: root raises the limit (ulimit -Hn)";
  }
  return feature;
}

/// Processes and threads, by the user's limit, which does not apply to root, and by those of control groups.
MachineFeature processes() {
  std::uint64_t most = geteuid() == 0 ? kUnlimited : limits_of(RLIMIT_NPROC).rlim_cur;
  std::string source = "of the user (ulimit -u)";
  for (const ControlGroup& group : control_groups("", "pids")) {
    for (const std::string& name : group_and_those_around(group)) {
      const std::string text = file_contents(group.folder + name + "/pids.max");
      if (text.empty() || text.front() < '0' || text.front() > '9') continue;  // "max"
      const std::uint64_t limit = std::strtoull(text.c_str(), nullptr, 10);
      if (limit >= most) continue;
      most = limit;
      source = "of the control group " + group_text(name);
    }
  }
  MachineFeature feature{"processes", true, false, limit_text(most), "and threads, at once", ""};
  if (most < kManyWorkers * 4) {
    feature.limit = std::to_string(most) + " processes and threads at once, the limit " + source +
                    ": a worker has one and those of its libraries (--threads-per-worker)";
  }
  return feature;
}

}  // namespace

std::string examine_processors() {
  const auto topology = read_topology();
  if (!topology || topology->cores.empty()) return "";
  PlacementQuery query;
  query.usable_cpus = topology->is_real ? cpu_room().cpus : static_cast<int>(topology->cpus().size());
  query.workers = query.usable_cpus;
  const auto placement = place_workers(*topology, query);
  return placement ? processors_text(*topology, *placement, query.workers) : "";
}

std::vector<MachineFeature> examine_limits() {
  return {cpus(), cores(), memory(), shared_memory(), huge_pages(), processes(), open_files()};
}

}  // namespace mprun
