// What the supervisor reports of its workers: what each does, and what it uses.
#include <algorithm>

#include "supervise/supervisor.h"

namespace mprun {
namespace {

constexpr Nanos kReportEvery = 100 * kNanosPerMilli;

}  // namespace

// All looks at the same moment share one listing.
const ProcessTable& Supervisor::processes(Nanos now) {
  if (now != listed_ && !slots_.empty()) processes_.look(proc_.get());
  listed_ = now;
  return processes_;
}

void Supervisor::look_at_usage(Nanos now) {
  static constexpr Nanos kLookEvery = kNanosPerSecond;
  static constexpr Nanos kLookAtLeastEvery = 10 * kNanosPerSecond;
  // Looking may take one part in this many of our own time.
  static constexpr Nanos kMostOfTime = 100;
  if (now >= next_usage_look_) {
    const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
    usage_.look(processes(now), slots_, now);
    measured_ = wall_now();
    const Nanos cost = read_clock(CLOCK_THREAD_CPUTIME_ID) - began;
    next_usage_look_ = now + std::clamp(cost * kMostOfTime, kLookEvery, kLookAtLeastEvery);
    last_report_ = 0;
  }
  if (now - last_report_ < kReportEvery) return;
  last_report_ = now;
  report_workers(now);
}

void Supervisor::report_workers(Nanos now) {
  std::vector<std::int32_t> pids(held_.size());
  for (const auto& [pid, slot] : slots_) pids[static_cast<std::size_t>(slot)] = pid;
  std::vector<WorkerView> workers;
  workers.reserve(held_.size());
  for (int slot = 0; slot < static_cast<int>(held_.size()); ++slot) {
    const auto state = scheduler_->state(slot);
    if (!state) continue;
    const Usage::Slot& used = usage_.at(slot);
    WorkerView view{slot, pids[static_cast<std::size_t>(slot)], *state, {}, 0, used.cpu, used.load, used.memory};
    if (view.pid != 0 && used.stopped) view.state = WorkerState::kStopped;
    if (const auto task = scheduler_->current(slot)) {
      view.task = task->task;
      view.task_seconds = to_seconds(now - scheduler_->task_started(slot));
    }
    workers.push_back(view);
  }
  publish(WorkersSeen{workers, measured_});
}

}  // namespace mprun
