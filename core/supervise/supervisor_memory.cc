// What the supervisor does about memory: it ends workers that use more than limits.memory_per_worker, and says so when
// the kernel has ended one because memory ran out.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "json/words.h"
#include "supervise/supervisor.h"

namespace mprun {

void Supervisor::begin_memory_watch() {
  oom_kills_ = oom_kills();
  if (!setup_.spec->limits.memory_per_worker) return;
  std::uint64_t given = 0;
  for (const SharedTensor& tensor : setup_.spec->shared) given = std::max(given, tensor.offset + tensor.bytes);
  memory_.emplace(proc_.get(), *setup_.spec->limits.memory_per_worker, given,
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

void Supervisor::look_at_memory(Nanos now) {
  static constexpr Nanos kLookEvery = 100 * kNanosPerMilli;
  static constexpr Nanos kLookAtLeastEvery = 3 * kNanosPerSecond;
  // Looking may take one part in this many of our own time.
  static constexpr Nanos kMostOfTime = 100;
  if (!memory_ || now < next_memory_look_) return;
  const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  std::vector<pid_t> workers;
  workers.reserve(slots_.size());
  for (const auto& [pid, slot] : slots_) workers.push_back(pid);
  const auto excesses = memory_->look(processes(now), workers);
  const Nanos cost = read_clock(CLOCK_THREAD_CPUTIME_ID) - began;
  next_memory_look_ = now + std::clamp(cost * kMostOfTime, kLookEvery, kLookAtLeastEvery);
  for (const MemoryUse::Excess& excess : excesses) {
    const auto worker = slots_.find(excess.worker);
    if (worker == slots_.end()) continue;
    const int slot = worker->second;
    const auto task = scheduler_->current(slot);
    const std::string user = task ? "task " + std::to_string(task->task) : "worker " + std::to_string(slot);
    const std::string story = user + " used " + size_text(excess.bytes) + " of memory; limits.memory_per_worker is " +
                              size_text(*setup_.spec->limits.memory_per_worker);
    hung_[slot] = story;
    if (!task) notice(Notice::Kind::kWarning, story + ": it was ended");
    post(event::WorkerTooLarge{slot});
  }
}

// The kernel counts the processes that it kills, but does not say which.
std::string Supervisor::memory_text(ProcessEnd end) {
  if (end.signal != SIGKILL) return "";
  const OomKills before = oom_kills_;
  oom_kills_ = oom_kills();
  if (oom_kills_.group > before.group) return ", and its control group ran out of memory";
  return oom_kills_.machine > before.machine ? ", and the machine ran out of memory" : "";
}

}  // namespace mprun
