#include "supervise/vital_signs.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace mprun {
namespace {

/// When to look again after a look that cost so much of our own time.
Nanos next_look(Nanos now, Nanos cost, Nanos most_often, Nanos at_least) {
  constexpr Nanos kMostOfTime = 100;
  return now + std::clamp(cost * kMostOfTime, most_often, at_least);
}

}  // namespace

VitalSigns::VitalSigns(const JobSpec& spec) : usage_(proc_.get(), spec.processes) {
  if (!spec.limits.memory_per_worker) return;
  std::uint64_t given = 0;
  for (const SharedTensor& tensor : spec.shared) given = std::max(given, tensor.offset + tensor.bytes);
  memory_.emplace(proc_.get(), *spec.limits.memory_per_worker, given,
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

// All looks at the same moment share one listing.
const ProcessTable& VitalSigns::processes(Nanos now) {
  if (now != listed_) processes_.look(proc_.get());
  listed_ = now;
  return processes_;
}

bool VitalSigns::look_at_usage(const std::map<pid_t, int>& workers, Nanos now) {
  if (now < next_usage_look_) return false;
  const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  usage_.look(workers.empty() ? processes_ : processes(now), workers, now);
  measured_ = wall_now();
  next_usage_look_ = next_look(now, read_clock(CLOCK_THREAD_CPUTIME_ID) - began, kNanosPerSecond, 10 * kNanosPerSecond);
  return true;
}

std::vector<MemoryUse::Excess> VitalSigns::look_at_memory(const std::map<pid_t, int>& workers, Nanos now) {
  if (!memory_ || workers.empty() || now < next_memory_look_) return {};
  const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  std::vector<pid_t> pids;
  pids.reserve(workers.size());
  for (const auto& [pid, slot] : workers) pids.push_back(pid);
  auto excesses = memory_->look(processes(now), pids);
  next_memory_look_ =
      next_look(now, read_clock(CLOCK_THREAD_CPUTIME_ID) - began, 100 * kNanosPerMilli, 3 * kNanosPerSecond);
  return excesses;
}

// The kernel counts the processes that it kills, but does not say which.
std::string VitalSigns::memory_text(ProcessEnd end) {
  if (end.signal != SIGKILL) return "";
  const OomKills before = oom_kills_;
  oom_kills_ = oom_kills();
  if (oom_kills_.group > before.group) return ", and its control group ran out of memory";
  return oom_kills_.machine > before.machine ? ", and the machine ran out of memory" : "";
}

}  // namespace mprun
