#include "supervise/scheduler.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace mprun {
namespace {

// Workers that die while starting, in a row, before the job is given up.
constexpr int kMostStartDeaths = 3;
// The same for one slot, whatever others do, and for workers that die after they were ready but before they have begun
// a task; more are tolerated of those that another process may have killed.
constexpr int kMostFailedStarts = 20, kOwnFailedStart = 7, kOtherFailedStart = 1;

}  // namespace

Scheduler::Scheduler(Policy policy)
    : policy_(policy),
      workers_(static_cast<std::size_t>(policy.workers)),
      failed_starts_(workers_.size()),
      counts_(policy.earlier) {
  counts_.read = counts_.done();
  if (policy_.has_leader) {
    awaits_leader_ = regrouping_ = true;
    next_attempt_at_ = 0;
  }
}

void Scheduler::step(const Event& event, Nanos now, std::vector<Action>* actions) {
  now_ = now;
  actions_ = actions;
  std::visit([this](const auto& e) { on(e); }, event);
}

bool Scheduler::over() const { return alive_ == 0 && (start_failed_ || stopping_ != Cause::kNone || !work_left()); }

std::optional<TaskAttempt> Scheduler::current(int slot) const {
  const auto& queue = at(slot).in_flight;
  return queue.empty() ? std::nullopt : std::optional(queue.front());
}

std::optional<WorkerState> Scheduler::state(int slot) const {
  const Worker& worker = at(slot);
  if (worker.state == State::kAbsent) return std::nullopt;
  if (worker.state == State::kRetiring || worker.kill_cause != Cause::kNone) return WorkerState::kEnding;
  if (worker.state == State::kStarting) return WorkerState::kStarting;
  return worker.in_flight.empty() ? WorkerState::kIdle : WorkerState::kBusy;
}

bool Scheduler::work_left() const {
  return !inputs_ended_ || fresh_count_ > 0 || !returned_.empty() || !suspects_.empty() || !outcasts_.empty() ||
         !delayed_.empty() || regrouping_ || awaits_leader_ || busy_ > 0;
}

bool Scheduler::ready_to_assign() const {
  return stopping_ == Cause::kNone && !start_failed_ && (!returned_.empty() || fresh_count_ > 0);
}

// --- events ---

void Scheduler::on(const event::Begin& /*e*/) {
  begun_ = now_;
  read_ahead();
  for (int slot = 0; slot < policy_.workers; ++slot) start_worker(slot);
}

void Scheduler::on(const event::InputsRead& e) {
  reading_ = false;
  counts_.read += e.count;
  fresh_count_ += e.count;
  if (e.count > 0) fresh_.emplace_back(e.first, e.first + e.count);
  inputs_ended_ = inputs_ended_ || e.ended;
  if (!work_left()) end_held();
  feed_all();
}

void Scheduler::on(const event::WorkerReady& e) {
  Worker& worker = at(e.slot);
  if (worker.state != State::kStarting) return;
  worker.state = State::kReady;
  start_deaths_ = 0;
  assign_or_retire(e.slot);
}

void Scheduler::on(const event::TaskDone& e) {
  Worker& worker = at(e.slot);
  if (worker.in_flight.empty()) return;
  const TaskAttempt task = worker.in_flight.front();
  worker.used = true;
  pop_current(&worker);
  const double seconds = to_seconds(e.duration);
  average_ = average_ == 0 ? std::max(seconds, 1e-9) : average_ * 0.95 + seconds * 0.05;
  // It may have raised because of our TERM, or because of the signal that has interrupted us as well.
  const bool interrupted = e.from_outside && stopping_ == Cause::kInterrupted;
  const Cause cause = worker.kill_cause == Cause::kNone && interrupted ? Cause::kInterrupted : worker.kill_cause;
  const Nanos running = e.duration;
  if (policy_.process_per_task) {  // this process is over; the next one starts with a clean sheet
    worker.kill_cause = Cause::kNone;
    worker.deadline.reset();
    worker.killed = false;
  }
  if (regrouping_ && is_going()) {
    run_again(e.slot, task, e.failed ? cause : Cause::kRankFailed, running);
  } else if (e.failed) {
    settle_failure(e.slot, task, cause, running, false, e.died);
  } else if (may_run_again(task)) {
    held_[e.slot] = {task, running};
    emit(action::HoldResult{e.slot, task});
  } else {
    end_task(e.slot, task, TaskStatus::kOk, Cause::kNone, running);
  }
  if (!work_left()) end_held();
  regroup();
  assign_or_retire(e.slot);
  if (policy_.shares_inputs) read_ahead();  // others read just before they run out; here, that is now
}

void Scheduler::on(const event::WorkerGone& e) {
  Worker& worker = at(e.slot);
  if (worker.state == State::kAbsent) return;
  const bool starting = worker.state == State::kStarting;
  const bool failed_start = worker.state != State::kRetiring && !worker.used && !e.started;
  const bool own = !e.from_outside || worker.kill_cause != Cause::kNone;
  // An interruption of a job may signal all its processes: that is no fault of the task.
  const bool interrupted = e.from_outside && stopping_ == Cause::kInterrupted;
  const Cause cause = worker.kill_cause != Cause::kNone ? worker.kill_cause
                      : interrupted                     ? Cause::kInterrupted
                                                        : Cause::kDeath;
  const Nanos running = now_ - worker.task_started;
  const bool alone = worker.alone;
  std::deque<TaskAttempt> lost;
  lost.swap(worker.in_flight);
  if (!lost.empty()) --busy_;
  --alive_;
  worker = Worker{};
  if (e.started && !lost.empty()) {
    const TaskAttempt task = lost.front();
    lost.pop_front();
    settle_failure(e.slot, task, cause, running, alone);
  }
  auto& waiting = alone ? suspects_ : returned_;  // a suspect that was not begun stays one
  waiting.insert(waiting.begin(), lost.begin(), lost.end());
  if (!failed_start) failed_starts_[static_cast<std::size_t>(e.slot)] = 0;
  if (failed_start) count_failed_start(e.slot, starting, own);
  if (stopping_ == Cause::kNone && !start_failed_ && work_left()) start_worker(e.slot);
  feed_all();
}

void Scheduler::on(const event::StartFailed& /*e*/) {
  if (start_failed_) return;
  start_failed_ = true;
  end_held();
  for (int slot = 0; slot < policy_.workers; ++slot) terminate(slot, Cause::kErrorStop);
}

void Scheduler::on(const event::TakenBack& e) {
  Worker& worker = at(e.slot);
  worker.asked_back = false;
  const std::size_t count = std::min<std::size_t>(e.count, worker.in_flight.size());
  if (count == 0) return;
  const auto first = worker.in_flight.end() - static_cast<std::ptrdiff_t>(count);
  returned_.insert(returned_.begin(), first, worker.in_flight.end());
  worker.in_flight.erase(first, worker.in_flight.end());
  worker.handed -= static_cast<int>(count);
  if (worker.in_flight.empty()) --busy_;
  feed_all();
}

void Scheduler::on(const event::Interrupt& /*e*/) {
  ++interrupts_;
  if (interrupts_ == 1) {
    stop(Cause::kInterrupted);
    return;
  }
  stopping_ = Cause::kInterrupted;
  for (int slot = 0; slot < policy_.workers; ++slot) kill_at_once(slot, Cause::kInterrupted);
}

void Scheduler::on(const event::WorkerHung& e) { kill_at_once(e.slot, Cause::kHang); }

// At once: a process that grows by a gigabyte a second is not asked to end.
void Scheduler::on(const event::WorkerTooLarge& e) { kill_at_once(e.slot, Cause::kMemory); }

void Scheduler::on(const event::JobHung& /*e*/) {
  stop(Cause::kHang);
  for (int slot = 0; slot < policy_.workers; ++slot) kill_at_once(slot, Cause::kHang);
}

void Scheduler::on(const event::Resumed& e) {
  begun_ += e.stopped_for;
  stop_deadline_ += e.stopped_for;
  for (Worker& worker : workers_) {
    worker.task_started += e.stopped_for;
    if (worker.deadline) *worker.deadline += e.stopped_for;
  }
}

void Scheduler::on(const event::Tick& /*e*/) {
  if (policy_.job_limit && now_ - begun_ >= *policy_.job_limit &&
      (stopping_ == Cause::kNone || stopping_ == Cause::kErrorStop)) {
    stop(Cause::kJobLimit);
    stop_deadline_ = now_;
  }
  while (!delayed_.empty() && delayed_.begin()->first <= now_) {
    put_back(delayed_.begin()->second.task, delayed_.begin()->second.suspect);
    delayed_.erase(delayed_.begin());
  }
  if (!policy_.has_leader) begin_attempt();
  for (int slot = 0; slot < policy_.workers; ++slot) check_deadlines(slot);
  feed_all();
}

// --- decisions ---

void Scheduler::start_worker(int slot) {
  at(slot).state = State::kStarting;
  ++alive_;
  emit(action::StartWorker{slot});
}

void Scheduler::count_failed_start(int slot, bool starting, bool own) {
  if (stopping_ != Cause::kNone || (policy_.process_per_task && !starting)) return;
  if (starting && own) ++start_deaths_;
  int& weight = failed_starts_[static_cast<std::size_t>(slot)];
  weight += own ? kOwnFailedStart : kOtherFailedStart;
  if (start_deaths_ >= kMostStartDeaths || weight >= kMostFailedStarts) on(event::StartFailed{});
}

// What a ready worker does next: more tasks, its end, or waiting.
void Scheduler::assign_or_retire(int slot) {
  Worker& worker = at(slot);
  if (worker.state != State::kReady || worker.kill_cause != Cause::kNone) return;
  feed(slot);
  if (!worker.in_flight.empty()) return;
  const bool used_up = policy_.tasks_per_worker && worker.handed >= *policy_.tasks_per_worker;
  if (used_up || stopping_ != Cause::kNone || start_failed_ || !work_left()) {
    retire(slot);
    if (!work_left() && stopping_ == Cause::kNone) {  // the last task is done: all workers may end
      for (int other = 0; other < policy_.workers; ++other) {
        if (at(other).idle()) retire(other);
      }
    }
  }
}

Nanos Scheduler::delay_after(int attempt) const {
  constexpr double kLongest = 1e18;  // 31 years, which later sums do not overflow
  const double most = std::min(kLongest, static_cast<double>(policy_.retry_max_delay.value_or(Nanos{1} << 60U)));
  const double delay =  // no std::pow: that of glibc 2.29 is a new symbol
      static_cast<double>(policy_.retry_delay) * __builtin_powi(policy_.retry_backoff, attempt - 1);
  return static_cast<Nanos>(std::min(delay, most));
}

void Scheduler::put_back(TaskAttempt task, bool suspect) {
  constexpr int kTrust = 2;  // deaths, after which others go first
  auto& waiting = !suspect ? returned_ : task.attempt > kTrust ? outcasts_ : suspects_;
  waiting.push_back(task);
}

void Scheduler::pop_current(Worker* worker) {
  worker->in_flight.pop_front();
  worker->alone = false;
  worker->task_started = now_;
  if (worker->in_flight.empty()) --busy_;
}

int Scheduler::retries_after(Cause cause, bool died) const {
  if (cause == Cause::kHang) return policy_.retries_on_hang;
  const bool by_error = cause == Cause::kNone && !(policy_.ranks && died);
  return by_error ? policy_.retries_on_error : policy_.retries_on_death;
}

// An attempt failed: by an error of its own (kNone), a death, a limit, or because the job stops.
void Scheduler::settle_failure(int slot, TaskAttempt task, Cause cause, Nanos running, bool alone, bool died) {
  const bool by_us = cause == Cause::kInterrupted || cause == Cause::kJobLimit || cause == Cause::kErrorStop ||
                     cause == Cause::kRankFailed;
  if (by_us) {
    end_task(slot, task, TaskStatus::kCancelled, cause, running);
    return;
  }
  if (task.attempt > retries_after(cause, died) || stopping_ != Cause::kNone || start_failed_) {
    // One that has attempts left is for the next session, as are those that wait; ranks start again anyway.
    const bool again = task.attempt <= retries_after(cause, died) && !policy_.ranks && stopping_ != Cause::kHang;
    end_task(slot, task, again ? TaskStatus::kCancelled : TaskStatus::kFailed, cause, running, alone && !again);
    return;
  }
  if (policy_.ranks) {
    restart_group(slot, task, cause, running);
    return;
  }
  ++counts_.retried;
  emit(action::RetryTask{slot, task, cause, alone, running});
  const TaskAttempt again{task.task, task.attempt + 1};
  const bool suspect = !policy_.process_per_task && (cause == Cause::kDeath || cause == Cause::kMemory);
  if (const Nanos delay = delay_after(task.attempt); delay > 0) {
    delayed_.emplace(now_ + delay, Waiting{again, suspect});
  } else {
    put_back(again, suspect);
  }
}

void Scheduler::end_task(int slot, TaskAttempt task, TaskStatus status, Cause cause, Nanos running, bool alone) {
  if (status == TaskStatus::kOk) ++counts_.ok;
  if (status == TaskStatus::kFailed) ++counts_.failed;
  if (status == TaskStatus::kCancelled) ++counts_.cancelled;
  emit(action::EndTask{slot, task, status, cause, running, alone});
  if (status != TaskStatus::kFailed || stopping_ != Cause::kNone) return;
  const bool too_many = policy_.max_failures && counts_.failed >= static_cast<std::uint64_t>(*policy_.max_failures);
  if (policy_.ranks) {
    stop_ranks(cause == Cause::kHang ? cause : Cause::kRankFailed);
  } else if (policy_.stop_on_error || too_many) {
    stop(Cause::kErrorStop);
  }
}

void Scheduler::stop_ranks(Cause cause) {
  stop(cause);
  stop_deadline_ = now_;
  for (int slot = 0; slot < policy_.workers; ++slot) {
    if (!at(slot).in_flight.empty()) terminate(slot, Cause::kRankFailed);  // the others did not hang
    check_deadlines(slot);
  }
}

// No more tasks are handed out; what runs may finish: after an error for as long as it takes, else until
// stop_deadline_. So another cause may set a limit to the stop that an error began.
void Scheduler::stop(Cause cause) {
  if (stopping_ == cause || (stopping_ != Cause::kNone && stopping_ != Cause::kErrorStop)) return;
  stopping_ = cause;
  stop_deadline_ = now_ + policy_.grace;
  end_held();
  for (int slot = 0; slot < policy_.workers; ++slot) {
    const Worker& worker = at(slot);
    if (worker.state == State::kStarting) {
      terminate(slot, cause);
    } else if (worker.in_flight.size() > 1) {
      take_back(slot);
    } else {
      assign_or_retire(slot);
    }
  }
}

void Scheduler::terminate(int slot, Cause cause) {
  Worker& worker = at(slot);
  if (worker.state == State::kAbsent || worker.kill_cause != Cause::kNone) return;
  if (policy_.process_per_task && worker.in_flight.empty()) {
    assign_or_retire(slot);
    return;
  }
  worker.kill_cause = cause;
  worker.deadline = now_ + policy_.grace;
  if (worker.in_flight.size() > 1) take_back(slot);  // what has not begun shall not die with it
  emit(action::Signal{slot, SIGTERM, cause});
}

void Scheduler::kill_at_once(int slot, Cause cause) {
  Worker& worker = at(slot);
  if (worker.state == State::kAbsent || (policy_.process_per_task && worker.in_flight.empty())) return;
  if (worker.kill_cause == Cause::kNone) worker.kill_cause = cause;
  worker.killed = true;
  if (worker.in_flight.size() > 1) take_back(slot);  // what has not begun shall not die with it
  emit(action::Signal{slot, SIGKILL, cause});
}

void Scheduler::retire(int slot) {
  at(slot).state = State::kRetiring;
  at(slot).deadline = now_ + policy_.join_limit;
  emit(action::Retire{slot});
}

void Scheduler::check_deadlines(int slot) {
  Worker& worker = at(slot);
  if (worker.state == State::kAbsent) return;
  if (worker.kill_cause != Cause::kNone) {
    if (!worker.killed && worker.deadline && now_ >= *worker.deadline) {
      worker.killed = true;
      emit(action::Signal{slot, SIGKILL, worker.kill_cause});
    }
    return;
  }
  const bool bounded = stopping_ != Cause::kNone && stopping_ != Cause::kErrorStop;
  if (worker.state == State::kRetiring) {
    if (bounded && now_ >= stop_deadline_) {
      terminate(slot, stopping_);
    } else if (worker.deadline && now_ >= *worker.deadline) {
      terminate(slot, Cause::kJoinLimit);
    }
    return;
  }
  if (worker.in_flight.empty()) return;
  if (policy_.task_limit && now_ - worker.task_started >= *policy_.task_limit) terminate(slot, Cause::kTaskLimit);
  if (bounded && now_ >= stop_deadline_) terminate(slot, stopping_);
}

}  // namespace mprun
