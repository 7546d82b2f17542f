// What the oracle demands of ranks that start again: all of them or none, each in its slot, after the delay.
#include "oracle.h"

namespace mprun::simulation {

// Whether a rank that has ended well has to run again if another one fails.
bool Oracle::may_run_again() const {
  const bool others = !inputs_ended_ || number(TaskState::kInFlight) > 1 || number(TaskState::kWaiting) > 0 ||
                      regrouping_ || awaits_leader_;
  return policy_.ranks && going() && (policy_.has_leader || attempt_ <= policy_.most_restarts()) && others;
}

void Oracle::allow(const action::HoldResult& a) {
  if (!ending_) return fail("a result is held that did not arrive");
  const Ending ending = *ending_;
  ending_.reset();
  require(a.slot == ending.slot && a.task.task == ending.task.task && a.task.attempt == ending.task.attempt,
          "another result is held than the one that arrived");
  require(!ending.failed, "a failure is held as a result");
  require(!regrouping_ && may_run_again(), "a result is held though no failure can follow");
  task(a.task.task).running = ending.running;
  move(a.task.task, TaskState::kHeld);
  stats_->saw(Seen::kHeldResults);
}

void Oracle::allow_held_to_end(const action::EndTask& a) {
  const TaskBook& book = task(a.task.task);
  require(a.slot == book.slot && a.task.attempt == attempt_, "a held result ends as that of another rank");
  require(a.status == TaskStatus::kOk && a.cause == Cause::kNone, "a held result ends as a failure");
  require(a.running == book.running, "a task's time is wrong");
  require(!going() || !work_left(), "a held result ends though another rank may fail");
  move(a.task.task, TaskState::kEnded);
  ++counts_.ok;
}

void Oracle::allow_group(const action::RetryTask& a) {
  TaskBook& book = task(a.task.task);
  require(a.task.attempt == attempt_ && a.slot == book.slot, "another attempt is repeated than the one that failed");
  require(going() && !a.alone, "ranks start again though the job stops");
  if (book.state == TaskState::kHeld) {
    require(regrouping_, "a rank that ended well starts again though none failed");
    require(a.cause == Cause::kRankFailed && a.running == book.running, "a held result is given up wrongly");
  } else if (!ending_ || ending_->task.task != a.task.task) {
    return fail("a rank starts again that reported no end");
  } else {
    const Ending ending = *ending_;
    ending_.reset();
    const bool begins = !regrouping_;
    require(a.running == ending.running, "an attempt's time is wrong");
    require(a.cause == (ending.failed ? ending.cause : Cause::kRankFailed),
            "an attempt is repeated for the wrong cause");
    require(!begins || (ending.failed && !stops_by_us(ending.cause) && may_retry(a.cause, attempt_, ending.died)),
            "ranks start again too often");
    if (begins) stats_->saw(Seen::kGroupRestarts);
    rank_failed_ = rank_failed_ || begins;
    regrouping_ = true;
  }
  move(a.task.task, TaskState::kDelayed);
  ++counts_.retried;
  if (number(TaskState::kInFlight) == 0 && number(TaskState::kHeld) == 0) end_attempt();
}

void Oracle::end_attempt() {
  next_attempt_at_ = now_ + delay_after(attempt_);
  ++attempt_;
  if (!policy_.has_leader) release_group();
}

bool Oracle::is_ready() const { return next_attempt_at_ && now_ >= *next_attempt_at_ && going(); }

void Oracle::release_group() {
  if (!is_ready()) return;
  next_attempt_at_.reset();
  regrouping_ = rank_failed_ = false;
  for (TaskId id = 0; id < tasks_.size(); ++id) {
    if (tasks_[id].state == TaskState::kDelayed) move(id, TaskState::kWaiting);
  }
}

// What does not fit the state of the ranks has no effect: a shard may learn of a decision late, or twice.
void Oracle::before(const event::GroupDecided& e) {
  if (!awaits_leader_ || !going()) return;
  const bool all_ended = inputs_ended_ && number(TaskState::kWaiting) + number(TaskState::kInFlight) == 0;
  if (e.phase == GroupPhase::kRun && e.attempt == attempt_) {
    release_group();
  } else if (e.phase == GroupPhase::kGather && is_ready() && e.attempt == attempt_ + 1) {
    ++attempt_;
  } else if (e.phase == GroupPhase::kGather && !regrouping_ && e.attempt == attempt_ + 1) {
    stats_->saw(Seen::kLeaderRestarts);
    regrouping_ = rank_failed_ = true;
    if (number(TaskState::kInFlight) + number(TaskState::kHeld) == 0) end_attempt();
  } else if (e.phase == GroupPhase::kFinished && !regrouping_ && all_ended && e.attempt == attempt_) {
    awaits_leader_ = false;
  } else if (e.phase == GroupPhase::kStopped) {
    rank_failed_ = true;
    stop(Cause::kRankFailed, now_);
  }
}

// A rank keeps its slot: that gives it its number.
void Oracle::allow_seat(int slot, TaskAttempt given) {
  TaskBook& book = task(given.task);
  require(!regrouping_, "a rank starts before the others have ended");
  for (const TaskBook& other : tasks_) {
    require((&other == &book) == (other.slot == slot) || (&other == &book && book.slot < 0),
            "a rank starts in the slot of another");
  }
  book.slot = slot;
}

void Oracle::check_group() {
  require(number(TaskState::kHeld) == 0 || (going() && work_left() && !regrouping_),
          "a result is held though no failure can follow");
  if (!policy_.ranks || !going() || regrouping_ || attempt_ == 1) return;
  for (const TaskBook& book : tasks_) {
    require(book.slot < 0 || book.state != TaskState::kWaiting, "a rank does not start again with the others");
  }
}

}  // namespace mprun::simulation
