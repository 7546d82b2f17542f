#include "supervise/usage.h"

#include <unistd.h>

#include <utility>

namespace mprun {

Usage::Usage(ProcSource* proc, int slots)
    : use_(proc, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK))),
      seen_(static_cast<std::size_t>(slots)),
      ended_(seen_.size()) {}

void Usage::look(const ProcessTable& table, const std::map<pid_t, int>& pids, Nanos now) {
  std::vector<pid_t> workers;
  workers.reserve(pids.size());
  for (const auto& [pid, slot] : pids) workers.push_back(pid);
  const auto uses = use_.look(table, workers);
  const double seconds = to_seconds(now - std::exchange(looked_, now));
  std::vector<Slot> before(ended_.size());
  before.swap(seen_);
  for (std::size_t slot = 0; slot < seen_.size(); ++slot) seen_[slot].cpu = ended_[slot];
  for (const auto& [pid, use] : uses) {
    Slot& slot = seen_[static_cast<std::size_t>(pids.at(pid))];
    slot.cpu += use.cpu;
    slot.memory = use.memory;
    slot.stopped = use.stopped;
  }
  for (std::size_t slot = 0; slot < seen_.size(); ++slot) {
    if (seconds > 0) seen_[slot].load = (seen_[slot].cpu - before[slot].cpu) / seconds;
  }
}

void Usage::process_ended(int slot, pid_t pid) { ended_[static_cast<std::size_t>(slot)] += use_.cpu_at_end(pid); }

}  // namespace mprun
