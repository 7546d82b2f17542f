// How ranks start again: all of them after the failure of one, as torchrun's --max-restarts. The attempt counts for the
// group. What ended well is held, because it runs again too; those that still run are ended. When the last one has
// ended, each goes back to the slot it had. scheduler.cc has the rest.
#include <utility>

#include "supervise/scheduler.h"

namespace mprun {

// A rank has ended well: whether the failure of another one could still start it again.
bool Scheduler::may_run_again(TaskAttempt task) const {
  return policy_.ranks && is_going() && task.attempt <= policy_.most_restarts() && work_left();
}

void Scheduler::end_held() {
  for (const auto& [slot, held] : std::exchange(held_, {})) {
    end_task(slot, held.task, TaskStatus::kOk, Cause::kNone, held.running);
  }
}

void Scheduler::restart_group(int slot, TaskAttempt task, Cause cause, Nanos running) {
  regrouping_ = true;
  run_again(slot, task, cause, running);
  for (const auto& [other, held] : std::exchange(held_, {})) {
    run_again(other, held.task, Cause::kRankFailed, held.running);
  }
  for (int other = 0; other < policy_.workers; ++other) {
    if (!at(other).in_flight.empty()) terminate(other, Cause::kRankFailed);
  }
}

void Scheduler::run_again(int slot, TaskAttempt task, Cause cause, Nanos running) {
  ++counts_.retried;
  again_[slot] = task.task;
  emit(action::RetryTask{slot, task, cause, false, running});
}

// Called after every end: the last one of an attempt sets the time of the next.
void Scheduler::regroup() {
  if (!regrouping_ || !is_going() || busy_ > 0) return;
  next_attempt_at_ = now_ + delay_after(attempt_);
  ++attempt_;
  begin_attempt();
}

void Scheduler::begin_attempt() {
  if (!next_attempt_at_ || now_ < *next_attempt_at_ || !is_going()) return;
  next_attempt_at_.reset();
  regrouping_ = false;
  for (const auto& [slot, task] : std::exchange(again_, {})) hand_out(slot, {task, attempt_});
  feed_all();  // those that did not begin before
}

}  // namespace mprun
