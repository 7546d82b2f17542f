#include "oracle.h"

#include <algorithm>
#include <csignal>

namespace mprun::simulation {
namespace {

// The scheduler's own limits; it may use less.
constexpr std::size_t kMostInFlight = 4097;

}  // namespace

Oracle::Oracle(const Policy& policy, std::uint64_t total, const std::vector<bool>* ended_earlier,
               const Scheduler* scheduler, Stats* stats)
    : policy_(policy),
      ended_earlier_(ended_earlier),
      scheduler_(scheduler),
      stats_(stats),
      slots_(static_cast<std::size_t>(policy.workers)),
      tasks_(total),
      failed_starts_(slots_.size()),
      asked_back_(slots_.size()),
      counts_(policy.earlier) {
  numbers_[0] = total;
  counts_.read = counts_.done();
  if (!policy_.has_leader) return;
  awaits_leader_ = regrouping_ = true;
  next_attempt_at_ = 0;
}

void Oracle::fail(const std::string& text) {
  if (!failure_) failure_ = text;
}

SlotBook& Oracle::at(int slot) {
  if (slot < 0 || slot >= policy_.workers) {
    fail("there is no slot " + std::to_string(slot));
    slot = 0;
  }
  return slots_[static_cast<std::size_t>(slot)];
}

TaskBook& Oracle::task(TaskId task) {
  if (task >= tasks_.size()) {
    fail("there is no task " + std::to_string(task));
    task = 0;
  }
  return tasks_[task];
}

void Oracle::move(TaskId id, TaskState state) {
  TaskBook& book = task(id);
  --numbers_[static_cast<std::size_t>(book.state)];
  ++numbers_[static_cast<std::size_t>(state)];
  auto& waiting = waiting_[static_cast<std::size_t>(book.trust)];
  if (book.state == TaskState::kWaiting) --waiting;
  if (state == TaskState::kWaiting) ++waiting;
  book.state = state;
}

bool Oracle::work_left() const {
  return !inputs_ended_ || awaits_leader_ ||
         number(TaskState::kWaiting) + number(TaskState::kDelayed) + number(TaskState::kInFlight) > 0;
}

bool Oracle::has_attempts(Cause cause, int attempt, bool died) const {
  const bool by_error = cause == Cause::kNone && !(policy_.ranks && died);
  const int retries = by_error                ? policy_.retries_on_error
                      : cause == Cause::kHang ? policy_.retries_on_hang
                                              : policy_.retries_on_death;
  return attempt <= retries;
}

bool Oracle::may_retry(Cause cause, int attempt, bool died) const {
  return has_attempts(cause, attempt, died) && going();
}

// The task is then for the next session.
bool Oracle::is_cut_short(const Ending& ending) const {
  return !going() && !policy_.ranks && stop_ != Cause::kHang &&
         has_attempts(ending.cause, ending.task.attempt, ending.died);
}

void Oracle::stop(Cause cause, Nanos deadline) {
  if (bounded() || stop_ == cause) return;
  stop_ = cause;
  stop_deadline_ = deadline;
}

// --- what an event means to the books ---

void Oracle::expect(const Event& event, Nanos now) {
  now_ = now;
  stop_before_ = stop_;
  start_failed_before_ = start_failed_;
  kill_all_.reset();
  kill_slot_ = -1;
  ending_.reset();
  rank_failed_ = false;
  std::fill(asked_back_.begin(), asked_back_.end(), false);
  std::visit([this](const auto& e) { before(e); }, event);
}

void Oracle::before(const event::Begin& /*e*/) { begun_ = now_; }

void Oracle::before(const event::InputsRead& e) {
  reading_ = false;
  for (; next_read_ < e.first + e.count; ++next_read_) {
    const bool skipped = next_read_ < e.first;
    require((*ended_earlier_)[next_read_] == skipped, "the simulated shell skipped the wrong task");
    move(next_read_, skipped ? TaskState::kEnded : TaskState::kWaiting);
  }
  fresh_ += e.count;
  counts_.read += e.count;
  inputs_ended_ = inputs_ended_ || e.ended;
}

void Oracle::before(const event::WorkerReady& e) {
  SlotBook& book = at(e.slot);
  if (!book.present || book.ready) return;
  book.ready = true;
  start_deaths_ = 0;
}

// A user who interrupts a job may also signal its processes: tasks are not to blame for those ends.
Cause Oracle::cause_of_end(const SlotBook& book, bool from_outside, Cause own) const {
  if (book.cause != Cause::kNone) return book.cause;
  return from_outside && stop_ == Cause::kInterrupted ? Cause::kInterrupted : own;
}

void Oracle::before(const event::TaskDone& e) {
  any_done_ = true;
  SlotBook& book = at(e.slot);
  if (book.held.empty()) return;
  ending_ = Ending{
      e.slot, book.held.front(), e.failed, cause_of_end(book, e.from_outside, Cause::kNone), e.duration, false, e.died};
  book.alone = false;
  book.used = true;
  if (book.cause != Cause::kNone && !e.failed) stats_->saw(Seen::kLateResults);
  book.held.pop_front();
  book.head_since = now_;
  if (!policy_.process_per_task) return;
  book.cause = Cause::kNone;
  book.term_at.reset();
  book.killed = false;
}

void Oracle::before(const event::WorkerGone& e) {
  SlotBook& book = at(e.slot);
  if (!book.present) return;
  require(!e.started || !book.held.empty(), "the simulated shell lost a task");
  if (e.started && !book.held.empty()) {
    const Cause cause = cause_of_end(book, e.from_outside, Cause::kDeath);
    ending_ = Ending{e.slot, book.held.front(), true, cause, now_ - book.head_since, book.alone};
    book.held.pop_front();
  }
  for (const TaskAttempt& lost : book.held) {
    if (book.alone) task(lost.task).trust = Trust::kSuspect;
    move(lost.task, TaskState::kWaiting);
  }
  count_failed_start(book, e);
  book = SlotBook{};
}

void Oracle::before(const event::StartFailed& /*e*/) { start_failed_ = true; }

void Oracle::before(const event::TakenBack& e) {
  --at(e.slot).take_backs;
  --pending_take_backs_;
}

void Oracle::before(const event::WorkerHung& e) {
  kill_slot_ = e.slot;
  kill_slot_cause_ = Cause::kHang;
}

void Oracle::before(const event::WorkerTooLarge& e) {
  kill_slot_ = e.slot;
  kill_slot_cause_ = Cause::kMemory;
}

void Oracle::before(const event::JobHung& /*e*/) {
  stop(Cause::kHang, now_ + policy_.grace);
  kill_all_ = Cause::kHang;
}

void Oracle::before(const event::Interrupt& /*e*/) {
  stats_->saw(++interrupts_ == 1 ? Seen::kFirstInterrupts : Seen::kSecondInterrupts);
  if (interrupts_ == 1) {
    stop(Cause::kInterrupted, now_ + policy_.grace);
    return;
  }
  stop_ = Cause::kInterrupted;
  kill_all_ = Cause::kInterrupted;
}

void Oracle::before(const event::Resumed& e) {
  begun_ += e.stopped_for;
  stop_deadline_ += e.stopped_for;
  for (SlotBook& book : slots_) {
    book.head_since += e.stopped_for;
    book.retired_at += e.stopped_for;
    if (book.term_at) *book.term_at += e.stopped_for;
  }
}

void Oracle::before(const event::Tick& /*e*/) {
  if (policy_.job_limit && now_ - begun_ >= *policy_.job_limit && !bounded()) {
    stop(Cause::kJobLimit, now_);
    stats_->saw(Seen::kJobLimits);
  }
  release_delayed();
  if (!policy_.has_leader) release_group();
}

void Oracle::took_back(int slot, std::uint32_t count) {
  auto& held = at(slot).held;
  for (std::uint32_t i = 0; i < count && !held.empty(); ++i) {
    move(held.back().task, TaskState::kWaiting);
    held.pop_back();
  }
  at(slot).handed -= static_cast<int>(count);
  stats_->saw(Seen::kTasksTakenBack, count);
}

// --- what each action has to fulfil ---

void Oracle::allow(const action::ReadInputs& a) {
  require(!reading_, "inputs are asked for twice");
  require(!inputs_ended_, "inputs are asked for after their end");
  require(stop_ == Cause::kNone, "inputs are asked for though the job stops");
  require(a.count > 0 && a.count <= kMostReadAhead, "a wrong number of inputs is asked for");
  const std::uint64_t waiting = number(TaskState::kWaiting) + number(TaskState::kDelayed);
  require(pending_take_backs_ > 0 || waiting + a.count <= kMostReadAhead, "more inputs are asked for than may wait");
  const auto one_each =
      static_cast<std::uint64_t>(policy_.workers) * static_cast<std::uint64_t>(policy_.chunk_size.value_or(1));
  require(!policy_.shares_inputs || any_done_ || a.count <= one_each, "tasks are claimed before they are needed");
  reading_ = true;
}

void Oracle::allow(const action::StartWorker& a) {
  SlotBook& book = at(a.slot);
  require(!book.present, "a worker is started in a slot that has one");
  require(going() && work_left(), "a worker is started for nothing");
  book = SlotBook{};
  book.present = true;
}

void Oracle::allow(const action::Assign& a) {
  SlotBook& book = at(a.slot);
  require(book.present && book.ready && !book.retired && book.cause == Cause::kNone,
          "tasks are given to a worker that takes none");
  require(book.take_backs == 0, "tasks are given to a worker from which others are just taken back");
  require(going(), "tasks are given out though the job stops");
  require(!a.tasks.empty(), "no tasks are given out");
  if (book.held.empty()) book.head_since = now_;
  for (const TaskAttempt& given : a.tasks) {
    TaskBook& known = task(given.task);
    require(known.state == TaskState::kWaiting, "a task is given out that does not wait for that");
    require(given.attempt == (policy_.ranks ? attempt_ : known.attempt), "an attempt has the wrong number");
    if (policy_.ranks) allow_seat(a.slot, given);
    require(!(*ended_earlier_)[given.task], "a task that ended in an earlier session is run again");
    allow_trust(book, known);
    if (!known.handed_out) {
      while (next_fresh_ < tasks_.size() && ((*ended_earlier_)[next_fresh_] || tasks_[next_fresh_].handed_out)) {
        ++next_fresh_;
      }
      require(given.task == next_fresh_, "fresh tasks are given out in another order than they were read");
      known.handed_out = true;
      --fresh_;
    }
    move(given.task, TaskState::kInFlight);
    book.held.push_back(given);
    book.alone = known.trust != Trust::kTrusted;
    ++book.handed;
  }
  require(!policy_.process_per_task || book.held.size() == 1, "a process has two tasks");
  require(!policy_.tasks_per_worker || book.handed <= *policy_.tasks_per_worker, "a worker gets too many tasks");
  require(book.held.size() <= std::max(kMostInFlight, static_cast<std::size_t>(policy_.chunk_size.value_or(1))),
          "too many tasks are in flight");
}

void Oracle::allow(const action::TakeBack& a) {
  SlotBook& book = at(a.slot);
  require(book.present && !policy_.process_per_task, "tasks are taken back from where none are");
  require(book.take_backs == 0, "tasks are taken back twice before the first answer");
  ++book.take_backs;
  ++pending_take_backs_;
  asked_back_[static_cast<std::size_t>(a.slot)] = true;
}

void Oracle::allow(const action::Retire& a) {
  SlotBook& book = at(a.slot);
  require(book.idle() && book.take_backs == 0, "a worker is retired that cannot be retired");
  const bool used_up = policy_.tasks_per_worker && book.handed >= *policy_.tasks_per_worker;
  require(used_up || !going() || !work_left(), "a worker is retired though there is work");
  if (used_up) stats_->saw(Seen::kWorkersUsedUp);
  book.retired = true;
  book.retired_at = now_;
}

void Oracle::allow(const action::Signal& a) {
  SlotBook& book = at(a.slot);
  require(book.present, "a worker is signalled that is not there");
  require(!policy_.process_per_task || !book.held.empty(), "a process is signalled that is not there");
  if (a.signal == SIGTERM) {
    allow_term(book, a);
  } else {
    allow_kill(book, a);
  }
  if (book.cause == Cause::kNone) book.cause = a.cause;
  if (a.signal == SIGTERM) book.term_at = now_;
  if (a.signal == SIGKILL) book.killed = true;
}

void Oracle::allow_term(const SlotBook& book, const action::Signal& a) {
  require(book.cause == Cause::kNone, "a worker is asked to end twice");
  require(book.held.size() < 2 || book.take_backs > 0, "queued tasks die with a worker");
  require(!rank_failed_ || book.held.empty() || a.cause == Cause::kRankFailed, "a rank is ended for the wrong cause");
  bool due = false;
  if (a.cause == Cause::kTaskLimit) {
    due = policy_.task_limit && !book.held.empty() && now_ - book.head_since >= *policy_.task_limit;
    stats_->saw(Seen::kTaskLimits);
  } else if (a.cause == Cause::kJoinLimit) {
    due = book.retired && now_ - book.retired_at >= policy_.join_limit;
    stats_->saw(Seen::kJoinLimits);
  } else if (a.cause == Cause::kErrorStop) {
    due = start_failed_ || (stop_ == Cause::kErrorStop && !book.ready);
  } else if (a.cause == Cause::kRankFailed && policy_.ranks) {
    due = stop_ == Cause::kRankFailed || stop_ == Cause::kHang || regrouping_;
  }
  due = due || (bounded() && a.cause == stop_ && (now_ >= stop_deadline_ || !book.ready));
  require(due, "a worker is asked to end without a reason");
}

void Oracle::allow_kill(const SlotBook& book, const action::Signal& a) {
  require(a.signal == SIGKILL, "there is no such signal");
  const bool at_once = kill_all_ || kill_slot_ == a.slot;
  const bool after_grace = book.term_at && !book.killed && now_ - *book.term_at >= policy_.grace;
  require(at_once || after_grace, "a worker is killed without a reason");
  if (!at_once) {
    require(a.cause == book.cause, "a worker is killed for another cause than it was asked to end for");
    stats_->saw(Seen::kKilledAfterGrace);
    return;
  }
  require(book.held.size() < 2 || book.take_backs > 0, "queued tasks die with a worker");
  require(a.cause == kill_all_.value_or(kill_slot_cause_), "a worker is killed for the wrong cause");
}

void Oracle::allow(const action::EndTask& a) {
  if (task(a.task.task).state == TaskState::kHeld) return allow_held_to_end(a);
  require(!regrouping_ || !going(), "a rank ends though all start again");
  if (!ending_) return fail("a task ends that reported no end");
  const Ending ending = *ending_;
  ending_.reset();
  require(a.slot == ending.slot && a.task.task == ending.task.task,
          "another task ends than the one that reported its end");
  require(a.task.attempt == ending.task.attempt, "a task ends with the wrong attempt");
  require(task(a.task.task).state == TaskState::kInFlight, "a task ends that does not run");
  require(a.running == ending.running, "a task's time is wrong");
  TaskStatus status = TaskStatus::kOk;
  if (ending.failed) {
    status = stops_by_us(ending.cause) || is_cut_short(ending) ? TaskStatus::kCancelled : TaskStatus::kFailed;
    require(status == TaskStatus::kCancelled || !may_retry(ending.cause, a.task.attempt, ending.died),
            "a task is not tried again");
  } else {
    require(!may_run_again(), "a rank ends though another one may fail");
  }
  require(a.status == status, "a task ends with the wrong status");
  require(a.cause == (ending.failed ? ending.cause : Cause::kNone), "a task ends for the wrong cause");
  require(a.alone == (ending.alone && status == TaskStatus::kFailed),
          "a task counts as alone, or not, contrary to the facts");
  move(a.task.task, TaskState::kEnded);
  const std::array<std::uint64_t*, 3> counts = {&counts_.ok, &counts_.failed, &counts_.cancelled};
  ++*counts[static_cast<std::size_t>(status)];
  if (status != TaskStatus::kFailed || stop_ != Cause::kNone) return;
  if (policy_.ranks) {
    stats_->saw(Seen::kFailedRanks);
    rank_failed_ = true;
    stop(a.cause == Cause::kHang ? a.cause : Cause::kRankFailed, now_);
  } else if (policy_.stop_on_error ||
             (policy_.max_failures && counts_.failed >= static_cast<std::uint64_t>(*policy_.max_failures))) {
    stats_->saw(Seen::kErrorStops);
    stop(Cause::kErrorStop, now_ + policy_.grace);
  }
}

}  // namespace mprun::simulation
