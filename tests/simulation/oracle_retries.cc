// What the oracle demands of retries: of tasks, when and next to which others, and of workers.
#include <algorithm>

#include "oracle.h"

namespace mprun::simulation {
namespace {

constexpr int kTrusted = 2;  // deaths after which a task waits for all others
constexpr int kMostStartDeaths = 3;
constexpr int kMostFailedStarts = 20, kOwnFailedStart = 7, kOtherFailedStart = 1;

}  // namespace

Nanos Oracle::delay_after(int attempt) const {
  double delay = static_cast<double>(policy_.retry_delay);
  for (int i = 1; i < attempt; ++i) delay *= policy_.retry_backoff;
  if (policy_.retry_max_delay) delay = std::min(delay, static_cast<double>(*policy_.retry_max_delay));
  return static_cast<Nanos>(delay);
}

void Oracle::release_delayed() {
  while (!delays_.empty() && delays_.begin()->first <= now_) {
    move(delays_.begin()->second, TaskState::kWaiting);
    delays_.erase(delays_.begin());
  }
}

// Called before the task is counted among those in flight.
void Oracle::allow_trust(const SlotBook& book, const TaskBook& known) {
  require(!book.alone || book.held.empty(), "a worker gets a task beside one that is tried alone");
  if (known.trust == Trust::kTrusted) {
    require(waiting(Trust::kSuspect) == 0, "a task is given out before one whose worker died");
    return;
  }
  stats_->saw(Seen::kTriedAlone);
  require(book.held.empty(), "a task whose worker died is not tried alone");
  if (known.trust == Trust::kSuspect || pending_take_backs_ > 0) return;
  require(waiting(Trust::kTrusted) == 0 && waiting(Trust::kSuspect) == 0,
          "a task that ended two workers is tried before others");
}

void Oracle::count_failed_start(const SlotBook& book, const event::WorkerGone& e) {
  int& weight = failed_starts_[static_cast<std::size_t>(e.slot)];
  if (book.retired || book.used || e.started) {
    weight = 0;
    return;
  }
  if (stop_ != Cause::kNone || (policy_.process_per_task && book.ready)) return;
  const bool own = !e.from_outside || book.cause != Cause::kNone;
  if (own && !book.ready) ++start_deaths_;
  weight += own ? kOwnFailedStart : kOtherFailedStart;
  if (start_deaths_ < kMostStartDeaths && weight < kMostFailedStarts) return;
  if (start_deaths_ < kMostStartDeaths) stats_->saw(Seen::kFailedStarts);
  start_failed_ = true;
}

void Oracle::allow(const action::RetryTask& a) {
  if (policy_.ranks) return allow_group(a);
  if (!ending_) return fail("a task is tried again that reported no end");
  const Ending ending = *ending_;
  ending_.reset();
  require(a.slot == ending.slot && a.task.task == ending.task.task && a.task.attempt == ending.task.attempt,
          "another attempt is repeated than the one that failed");
  require(a.running == ending.running, "an attempt's time is wrong");
  require(ending.failed && a.cause == ending.cause, "an attempt is repeated for the wrong cause");
  require(!stops_by_us(ending.cause) && may_retry(ending.cause, a.task.attempt, ending.died),
          "a task is tried too often");
  TaskBook& book = task(a.task.task);
  require(book.state == TaskState::kInFlight, "a task is tried again that does not run");
  require(a.alone == ending.alone, "a task is tried again as alone, or not, contrary to the facts");
  const bool suspect = !policy_.process_per_task && (a.cause == Cause::kDeath || a.cause == Cause::kMemory);
  ++book.attempt;
  book.trust = !suspect ? Trust::kTrusted : book.attempt > kTrusted ? Trust::kOutcast : Trust::kSuspect;
  ++counts_.retried;
  stats_->saw(a.cause == Cause::kNone     ? Seen::kRetriesOfErrors
              : a.cause == Cause::kHang   ? Seen::kRetriesOfHangs
              : a.cause == Cause::kDeath  ? Seen::kRetriesOfDeaths
              : a.cause == Cause::kMemory ? Seen::kRetriesOfMemory
                                          : Seen::kRetriesOfLimits);
  const Nanos delay = delay_after(a.task.attempt);
  if (delay == 0) return move(a.task.task, TaskState::kWaiting);
  move(a.task.task, TaskState::kDelayed);
  delays_.emplace(now_ + delay, a.task.task);
}

}  // namespace mprun::simulation
