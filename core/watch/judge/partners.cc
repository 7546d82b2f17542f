#include "watch/judge/partners.h"

#include <algorithm>

#include "watch/judge/wait.h"

namespace mprun {
namespace {

// A program that uses the library has loaded it by then: Python imports it after its start, perhaps from a slow disk.
constexpr Nanos kMayLoadUntil = 60 * kNanosPerSecond;

bool is_above(pid_t upper, pid_t pid, const TreeSnapshot& snapshot) {
  const TreeSnapshot::Process* process = snapshot.process(pid);
  for (std::size_t steps = 0; steps < snapshot.processes().size() && process != nullptr; ++steps) {
    if (process->parent == upper) return true;
    process = snapshot.process(process->parent);
  }
  return false;
}

bool is_young(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  const auto text = snapshot->proc()->read(std::to_string(process.pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  return !stat || age_of(*stat) < kMayLoadUntil;
}

}  // namespace

bool uses_torch(const std::vector<Mapping>& maps) { return maps_file(maps, "libtorch_cpu.so"); }

bool uses_zeromq(const std::vector<Mapping>& maps) { return maps_file(maps, "libzmq"); }

std::vector<pid_t> possible_partners(pid_t pid, UsesLibrary* uses, TreeSnapshot* snapshot) {
  std::vector<pid_t> found = snapshot->relatives_of(pid);
  for (const auto& [other, process] : snapshot->processes()) {
    if (std::find(found.begin(), found.end(), other) != found.end()) continue;
    const bool may_start_one = is_above(other, pid, *snapshot) || is_known_shell(process, snapshot);
    if (may_start_one || uses(snapshot->maps(other)) || is_young(process, snapshot)) found.push_back(other);
  }
  return found;
}

}  // namespace mprun
