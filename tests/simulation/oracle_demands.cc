// What the scheduler must have done by the end of a step; oracle.cc says what it may do.
#include <algorithm>

#include "oracle.h"

namespace mprun::simulation {
namespace {

// The scheduler takes tasks back sooner than this.
constexpr Nanos kLongBehindAnother = kNanosPerSecond;
constexpr std::uint64_t kMostQueued = 4097;

}  // namespace

void Oracle::check(const Event& event, const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    std::visit([this](const auto& a) { allow(a); }, action);
  }
  if (ending_) fail("a task has ended without a result");
  check_books();
  check_stop();
  check_group();
  if (std::holds_alternative<event::Tick>(event)) check_tick();
}

void Oracle::check_books() {
  const Counts& counts = scheduler_->counts();
  require(counts.read == counts_.read, "the count of tasks read is wrong");
  require(counts.ok == counts_.ok && counts.failed == counts_.failed && counts.cancelled == counts_.cancelled,
          "the counts of ended tasks are wrong");
  require(counts.retried == counts_.retried, "the count of retries is wrong");
  int alive = 0;
  int busy = 0;
  std::uint64_t in_flight = 0;
  for (int number = 0; number < policy_.workers; ++number) {
    const SlotBook& book = slot(number);
    alive += book.present ? 1 : 0;
    busy += scheduler_->in_flight(number) > 0 ? 1 : 0;
    in_flight += scheduler_->in_flight(number);
    if (book.take_backs > 0) continue;
    require(scheduler_->in_flight(number) == book.held.size(),
            "the scheduler and the shell differ in what is in flight");
    const auto current = scheduler_->current(number);
    require(!current || (!book.held.empty() && current->task == book.held.front().task),
            "the scheduler and the shell differ in what runs");
  }
  require(scheduler_->alive() == alive, "the number of living workers is wrong");
  require(scheduler_->busy() == busy, "the number of busy workers is wrong");
  const std::uint64_t ended = counts.done() - policy_.earlier.done();
  const std::uint64_t read = counts.read - policy_.earlier.done();
  require(scheduler_->held() == number(TaskState::kHeld), "the number of held results is wrong");
  require(read == ended + in_flight + scheduler_->waiting() + scheduler_->held(), "a task is lost or held twice");
  const bool settled = pending_take_backs_ == 0;
  require(!settled || scheduler_->waiting() == number(TaskState::kWaiting) + number(TaskState::kDelayed),
          "the scheduler and the shell differ in what waits");
  const std::uint64_t queued = std::max(kMostQueued, static_cast<std::uint64_t>(policy_.chunk_size.value_or(1)));
  require(read - ended <= kMostReadAhead + queued * slots_.size(), "too many tasks are held in memory");
  require(fresh_ <= kMostReadAhead, "too many inputs are read ahead");
  require(scheduler_->stopping() == stop_, "the job stops, or not, contrary to what happened");
  require(scheduler_->start_failed() == start_failed_, "the start failed, or not, contrary to what happened");
  const bool over = alive == 0 && (start_failed_ || stop_ != Cause::kNone || !work_left());
  require(!settled || scheduler_->over() == over, "the job is over, or not, contrary to what happened");
}

void Oracle::check_stop() {
  const bool stops = stop_ != stop_before_;
  const bool gives_up = start_failed_ && !start_failed_before_;
  for (int number = 0; number < policy_.workers; ++number) {
    const SlotBook& book = slot(number);
    if (!book.present) continue;
    const bool has_process = !policy_.process_per_task || !book.held.empty();
    if (stops) {
      require(book.ready || policy_.process_per_task || book.cause != Cause::kNone,
              "a worker may go on starting though the job stops");
      require(!book.idle(), "an idle worker is not retired though the job stops");
      require(!book.ready || book.held.size() < 2 || book.take_backs > 0,
              "tasks are not taken back though the job stops");
    }
    require(!gives_up || !has_process || book.cause != Cause::kNone, "a worker may live on though the start failed");
    require(!rank_failed_ || book.held.empty() || book.cause != Cause::kNone, "a rank lives on though another failed");
    require(!gives_up || !book.idle(), "an idle worker is not retired though the start failed");
    require(!(kill_all_ || kill_slot_ == number) || !has_process || book.killed,
            "a worker is not killed that has to be killed");
  }
}

void Oracle::check_due(const SlotBook& book) {
  if (book.cause != Cause::kNone) {
    require(book.killed || !book.term_at || now_ - *book.term_at < policy_.grace,
            "a worker that ignores TERM is not killed in time");
    return;
  }
  if (policy_.process_per_task && book.held.empty()) return;  // there is no process
  require(!book.retired || now_ - book.retired_at < policy_.join_limit, "a worker does not end, and is allowed to");
  require(!bounded() || now_ < stop_deadline_ || (!book.retired && book.held.empty()),
          "a worker goes on after the end of the job");
  require(!policy_.task_limit || book.held.empty() || now_ - book.head_since < *policy_.task_limit,
          "a task goes on after its limit");
}

void Oracle::check_tick() {
  bool idle = false;
  bool free = false;
  bool stuck = false;
  for (const SlotBook& book : slots_) {
    if (!book.present) {
      require(!going() || !work_left(), "a slot stays empty though there is work");
      continue;
    }
    check_due(book);
    idle = idle || book.idle();
    free = free || (book.idle() && !(policy_.ranks && (regrouping_ || book.used)));  // a slot is one rank
    stuck = stuck || (book.held.size() > 1 && now_ - book.head_since >= kLongBehindAnother);
  }
  require(!idle || going(), "a worker is kept though the job stops");
  require(!idle || work_left(), "a worker is kept though there is no work");
  require(!free || number(TaskState::kWaiting) == 0, "a worker is idle though tasks wait");
  const bool asked = std::find(asked_back_.begin(), asked_back_.end(), true) != asked_back_.end();
  require(!idle || !stuck || asked || policy_.process_per_task, "tasks wait for another though a worker is idle");
}

void Oracle::check_end(bool complete) {
  for (const SlotBook& book : slots_) require(!book.present, "the job is over and a worker is alive");
  if (!complete || stop_ != Cause::kNone || start_failed_) return;
  require(number(TaskState::kEnded) == tasks_.size(), "the job is over and a task has not ended");
  require(counts_.read == tasks_.size() && counts_.done() == tasks_.size(), "the counts at the end are wrong");
}

}  // namespace mprun::simulation
