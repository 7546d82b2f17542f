// How ranks start again: all of them after the failure of one, as torchrun's --max-restarts. The attempt counts for the
// group. What ended well is held, because it runs again too; those that still run are ended. When the last one has
// ended, each goes back to the slot it had. Ranks of several shards do so together: a leader decides when an attempt
// begins, ends, or has ended well (core/cluster/rendezvous.h). scheduler.cc has the rest.
#include <utility>

#include "supervise/scheduler.h"

namespace mprun {

// A rank has ended well: whether the failure of another one could still start it again.
bool Scheduler::may_run_again(TaskAttempt task) const {
  const bool is_last = !policy_.has_leader && task.attempt > policy_.most_restarts();
  return policy_.ranks && is_going() && !is_last && work_left();
}

void Scheduler::end_held() {
  for (const auto& [slot, held] : std::exchange(held_, {})) {
    end_task(slot, held.task, TaskStatus::kOk, Cause::kNone, held.running);
  }
}

void Scheduler::restart_group(int slot, TaskAttempt task, Cause cause, Nanos running) {
  run_again(slot, task, cause, running);
  end_attempt();
}

void Scheduler::end_attempt() {
  regrouping_ = true;
  for (const auto& [slot, held] : std::exchange(held_, {})) {
    run_again(slot, held.task, Cause::kRankFailed, held.running);
  }
  for (int slot = 0; slot < policy_.workers; ++slot) {
    if (!at(slot).in_flight.empty()) terminate(slot, Cause::kRankFailed);
  }
}

void Scheduler::run_again(int slot, TaskAttempt task, Cause cause, Nanos running) {
  ++counts_.retried;
  again_[slot] = task.task;
  emit(action::RetryTask{slot, task, cause, false, running});
}

// Called after every end: the last one of an attempt sets the time of the next.
void Scheduler::regroup() {
  if (!regrouping_ || next_attempt_at_ || !is_going() || busy_ > 0) return;
  next_attempt_at_ = now_ + delay_after(attempt_);
  ++attempt_;
  if (!policy_.has_leader) begin_attempt();
}

bool Scheduler::is_ready() const { return is_going() && next_attempt_at_ && now_ >= *next_attempt_at_; }

void Scheduler::begin_attempt() {
  if (!is_ready()) return;
  next_attempt_at_.reset();
  regrouping_ = false;
  for (const auto& [slot, task] : std::exchange(again_, {})) hand_out(slot, {task, attempt_});
  feed_all();  // those that did not begin before
}

// --- with the ranks of other shards ---

std::pair<RankState, int> Scheduler::rank_state() const {
  if (!is_going()) return {RankState::kStopped, attempt_};
  if (is_ready()) return {RankState::kReady, attempt_};
  if (regrouping_) return {RankState::kFailed, next_attempt_at_ ? attempt_ - 1 : attempt_};
  const bool all_held = inputs_ended_ && fresh_count_ == 0 && busy_ == 0;
  return {all_held ? RankState::kWell : RankState::kRunning, attempt_};
}

void Scheduler::on(const event::GroupDecided& e) {
  const auto [state, attempt] = rank_state();
  if (!awaits_leader_ || state == RankState::kStopped) return;
  if (e.phase == GroupPhase::kRun && state == RankState::kReady && e.attempt == attempt) {
    begin_attempt();
  } else if (e.phase == GroupPhase::kGather && state == RankState::kReady && e.attempt == attempt + 1) {
    ++attempt_;  // that attempt has failed elsewhere before it began here
  } else if (e.phase == GroupPhase::kGather && !regrouping_ && e.attempt == attempt + 1) {
    end_attempt();
    regroup();
  } else if (e.phase == GroupPhase::kFinished && state == RankState::kWell && e.attempt == attempt) {
    awaits_leader_ = false;
    end_held();
    feed_all();
  } else if (e.phase == GroupPhase::kStopped) {
    stop_ranks(Cause::kRankFailed);
  }
}

}  // namespace mprun
