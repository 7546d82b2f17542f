// Which tasks the scheduler hands out, how many, to which workers, and which it takes back; scheduler.cc has the rest.
#include <algorithm>
#include <utility>

#include "supervise/scheduler.h"

namespace mprun {
namespace {

// Work kept queued at a worker: enough to cover the supervisor's absence, little enough to steal back.
constexpr double kLookaheadSeconds = 0.02;
constexpr std::size_t kMostQueued = 4096;
// Inputs read ahead of need, so that a slow input never stops a fast job.
constexpr std::uint64_t kReadAhead = 8192;
// The same where other mpruns could take them: the time that it takes to get more.
constexpr double kSharedAheadSeconds = 0.5;
// A worker's queue shorter than this is not worth taking back.
constexpr double kStealSeconds = 0.001;

}  // namespace

std::size_t Scheduler::wanted_depth() const {
  if (policy_.process_per_task) return 1;
  const std::uint64_t unassigned = fresh_count_ + returned_.size();
  auto depth = static_cast<std::size_t>(policy_.chunk_size.value_or(1));
  if (average_ > 0) {
    const double ahead = std::clamp(kLookaheadSeconds / average_, 1.0, static_cast<double>(kMostQueued));
    depth = std::max(depth, 1 + static_cast<std::size_t>(ahead));
    if (inputs_ended_) depth = std::min<std::size_t>(depth, unassigned / (2 * workers_.size()) + 1);
  }
  // Not all to the first of several idle workers: the others would take tasks back, and it would get them again.
  const auto idle = std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.idle(); });
  if (idle > 1)
    depth = std::min<std::size_t>(depth, std::max<std::size_t>(1, unassigned / static_cast<std::size_t>(idle)));
  return depth;
}

TaskAttempt Scheduler::take_next() {
  if (!returned_.empty()) {
    const TaskAttempt task = returned_.front();
    returned_.pop_front();
    return task;
  }
  auto& [next, end] = fresh_.front();
  const TaskAttempt task{next++, attempt_};
  if (next == end) fresh_.pop_front();
  --fresh_count_;
  return task;
}

// An idle worker takes a suspect before all else; an outcast when there is nothing else.
bool Scheduler::feed_suspect(int slot) {
  Worker& worker = at(slot);
  if (!worker.in_flight.empty() || stopping_ != Cause::kNone || start_failed_) return false;
  if (policy_.tasks_per_worker && worker.handed >= *policy_.tasks_per_worker) return false;
  auto& waiting = suspects_.empty() && !ready_to_assign() ? outcasts_ : suspects_;
  if (waiting.empty()) return false;
  worker.alone = true;
  hand_out(slot, waiting.front());
  waiting.pop_front();
  return true;
}

// To a worker that has nothing.
void Scheduler::hand_out(int slot, TaskAttempt task) {
  Worker& worker = at(slot);
  worker.in_flight.push_back(task);
  worker.task_started = now_;
  ++worker.handed;
  ++busy_;
  emit(action::Assign{slot, {task}});
}

void Scheduler::feed(int slot) {
  Worker& worker = at(slot);
  if (worker.state != State::kReady || worker.kill_cause != Cause::kNone || worker.alone) return;
  // A slot is one rank.
  if (policy_.ranks && (regrouping_ || worker.used)) return;
  if (worker.asked_back) return;  // the answer counts from the end of its queue
  if (feed_suspect(slot) || !ready_to_assign()) return;
  // While a suspect waits for a worker to become idle, none gets more than it has.
  if (!suspects_.empty() && !worker.in_flight.empty()) return;
  const std::size_t depth = wanted_depth();
  if (worker.in_flight.size() * 2 > depth || (depth == 1 && !worker.in_flight.empty())) return;
  const bool idle = worker.in_flight.empty();
  action::Assign assign{slot, {}};
  while (worker.in_flight.size() < depth && ready_to_assign()) {
    if (policy_.tasks_per_worker && worker.handed >= *policy_.tasks_per_worker) break;
    worker.in_flight.push_back(take_next());
    ++worker.handed;
    assign.tasks.push_back(worker.in_flight.back());
  }
  if (!assign.tasks.empty()) {
    if (idle) {
      ++busy_;
      worker.task_started = now_;
    }
    emit(std::move(assign));
  }
  read_ahead();
}

void Scheduler::feed_all() {
  read_ahead();
  for (const bool idle : {true, false}) {  // those without work first
    for (int slot = 0; slot < policy_.workers; ++slot) {
      if (at(slot).in_flight.empty() == idle) assign_or_retire(slot);
    }
  }
  if (stopping_ == Cause::kNone && !start_failed_ && !ready_to_assign()) steal();
}

// How many tasks should wait to be handed out.
std::uint64_t Scheduler::wanted_ahead() const {
  if (!policy_.shares_inputs) return kReadAhead;
  std::uint64_t idle = 0;
  for (const Worker& worker : workers_) {
    if (worker.in_flight.empty() && worker.state != State::kRetiring) ++idle;
  }
  idle = std::min(idle * static_cast<std::uint64_t>(policy_.chunk_size.value_or(1)), kReadAhead);
  if (average_ <= 0 || average_ > kSharedAheadSeconds) return idle;
  const double ahead = kSharedAheadSeconds / average_ * static_cast<double>(workers_.size());
  return std::max(idle, static_cast<std::uint64_t>(std::min(ahead, static_cast<double>(kReadAhead))));
}

void Scheduler::read_ahead() {
  if (inputs_ended_ || reading_ || stopping_ != Cause::kNone) return;
  // Tasks to be tried again later count too: else a job in which all fail would be read into memory as a whole.
  const std::uint64_t wanted = wanted_ahead();
  if (waiting() >= (wanted + 1) / 2) return;
  reading_ = true;
  emit(action::ReadInputs{wanted - waiting()});
}

// Some worker is idle and nothing is left to hand out: take back the longest queue there is.
void Scheduler::steal() {
  if (policy_.process_per_task) return;
  if (std::none_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.idle(); })) return;
  int victim = -1;
  double longest = kStealSeconds;
  for (int slot = 0; slot < policy_.workers; ++slot) {
    const Worker& worker = at(slot);
    if (worker.in_flight.size() < 2 || worker.asked_back) continue;
    const double each = std::max(average_, to_seconds(now_ - worker.task_started));
    const double queued = each * static_cast<double>(worker.in_flight.size() - 1);
    if (queued > longest) {
      longest = queued;
      victim = slot;
    }
  }
  if (victim >= 0) take_back(victim);
}

void Scheduler::take_back(int slot) {
  if (std::exchange(at(slot).asked_back, true)) return;  // two answers could not be told apart
  emit(action::TakeBack{slot});
}

}  // namespace mprun
