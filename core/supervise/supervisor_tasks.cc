// The supervisor's tasks: inputs read and held, tasks on their way to workers, and what becomes of them.
#include "supervise/supervisor.h"

#include <utility>

#include "json/json.h"
#include "supervise/cause_text.h"

namespace mprun {
namespace {

// The traceback of an error, or the end of the log, from the next line on; empty if there is neither.
std::string last_words(std::string_view error_json) {
  const Json error = parse_escaped_json(error_json);
  if (!error.is_object()) return "";
  for (const char* key : {"traceback", "log", "stderr"}) {
    if (!error.contains(key) || !error[key].is_string()) continue;
    std::string text = error[key].get<std::string>();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (!text.empty()) return "\n" + text;
  }
  return "";
}

std::string failure_text(TaskId rank, std::string_view reason) {
  return "rank " + std::to_string(rank) + " failed (" + std::string(reason) + ")";
}

}  // namespace

InputSource::Pull Supervisor::pull_input(std::string* text) {
  if (setup_.first_input.empty()) return setup_.inputs->pull(text);
  *text = std::exchange(setup_.first_input, {});
  return InputSource::Pull::kItem;
}

void Supervisor::perform(action::ReadInputs& wanted) {
  if (setup_.shared_tasks != nullptr) {
    read_shared(wanted.count);
    return;
  }
  event::InputsRead read;
  const TaskId before = next_input_;
  bool waits = false;
  while (read.count < wanted.count && !read.ended && !waits) {
    const bool skip = setup_.ended_earlier && setup_.ended_earlier(next_input_);
    if (skip && read.count > 0) break;  // those after it are asked for again
    std::string text;
    const InputSource::Pull pulled = pull_input(&text);
    if (pulled == InputSource::Pull::kEnd) {
      read.ended = true;
    } else if (pulled == InputSource::Pull::kWait) {
      waits = true;
    } else if (skip) {
      ++next_input_;
    } else {
      inputs_.keep(pulled, next_input_++, std::move(text));
      ++read.count;
    }
  }
  read.first = next_input_ - read.count;
  inputs_ended_ = read.ended;
  if (waits && next_input_ == before) {
    waiting_for_input_ = true;  // asked again when there is something to read
    const int fd = setup_.inputs->wait_fd();
    auto added = engine_->loop().add(fd, EPOLLIN, [this, fd, count = wanted.count](std::uint32_t) {
      engine_->loop().remove(fd);
      waiting_for_input_ = false;
      action::ReadInputs again{count};
      perform(again);
    });
    if (!added) fatal_ = added.error();
    return;
  }
  post(read);
}

// Neighbouring tasks, as many as are ours or can be; where there is none, tick() asks again.
void Supervisor::read_shared(std::uint64_t count) {
  SharedTasks& shared = *setup_.shared_tasks;
  event::InputsRead read;
  std::optional<TaskId> next;
  while (read.count < count && (next = shared.next(monotonic_now()))) {
    if (read.count == 0) read.first = *next;
    if (*next != read.first + read.count) break;
    std::string text;
    const InputSource::Pull pulled = shared.pull(&text);
    inputs_.keep(pulled, *next, std::move(text));
    ++read.count;
  }
  read.ended = inputs_ended_ = read.count == 0 && shared.all_done();
  wanted_shared_ = read.count == 0 && !read.ended ? count : 0;
  if (wanted_shared_ == 0) post(read);
}

void Supervisor::perform(action::Assign& wanted) {
  pool_->assign(wanted.slot, inputs_.hand_out(wanted.slot, wanted.tasks));
}

void Supervisor::perform(action::TakeBack& wanted) {
  const std::uint32_t count = pool_->take_back(wanted.slot);
  inputs_.take_back(wanted.slot, count);
  notice(Notice::Kind::kExplain,
         "took " + std::to_string(count) + " queued tasks back from worker " + std::to_string(wanted.slot));
  post(event::TakenBack{wanted.slot, count});
}

void Supervisor::on_result(int slot, const TaskReport& report) {
  auto task = inputs_.take_oldest(slot);
  if (!task) return;
  await_own_sigterm(report.end);
  ++results_since_wait_;
  TaskReport accepted = report;
  const std::string reason = refusal(report, *task);
  if (!reason.empty()) {
    accepted.failed = true;
    accepted.payload = reason;
  }
  const event::TaskDone done{slot, accepted.failed, report.duration, may_be_from_outside(report.end),
                             report.end.signal != 0};
  post(done, {std::move(*task), &accepted, {}});
}

// Why the outcome of a task does not count, as an error object; empty if it does.
std::string Supervisor::refusal(const TaskReport& report, const TaskInputs::Held& task) const {
  const char* type = "InputError";
  std::optional<std::string> reason;
  if (const std::string* fault = inputs_.fault_of(task.task.task)) {  // that overrides any outcome
    reason = *fault;
  } else if (!report.failed && !report.tensors.empty()) {
    type = "TensorError";
    reason = setup_.check_tensors(task.task.task, task.input, report);
  }
  return reason ? task_error(type, *reason).text() : "";
}

// A text that says why the worker of a task is gone; of one that took too long, where it was.
std::string Supervisor::why_gone(int slot, Cause cause, const Ending& ending) const {
  const auto hung = hung_.find(slot);
  const bool explained = cause == Cause::kHang || cause == Cause::kMemory || cause == Cause::kTaskLimit;
  if (hung != hung_.end() && explained) return hung->second;
  return cause == Cause::kTaskLimit ? "" : ending.gone.why;
}

void Supervisor::end_task(const action::EndTask& wanted, const Ending& ending) {
  TaskEnded ended;
  std::string error;
  ended.task = wanted.task.task;
  ended.status = wanted.status;
  ended.input = ending.task.input;
  ended.worker = wanted.slot;
  ended.attempt = wanted.task.attempt;
  ended.sent = ending.task.input.size();
  if (const TaskReport* report = ending.report) {
    ended.start = report->start;
    ended.duration = report->duration;
    ended.received = report->payload.size();
    received_ += ended.received;
    ended.end = report->end;
  } else {
    ended.start = wall_now() - wanted.running;
    ended.duration = wanted.running;
    ended.end = ending.gone.end;
  }
  if (ending.report != nullptr && wanted.cause == Cause::kNone) {
    ended.result = ending.report->payload;
    if (wanted.status == TaskStatus::kOk) ended.tensors = ending.report->tensors;
  } else {
    std::string text = cause_text(wanted.cause, policy_, wanted.slot, why_gone(wanted.slot, wanted.cause, ending));
    if (wanted.cause == Cause::kDeath && wanted.status == TaskStatus::kFailed) {
      auto& deaths = deaths_[wanted.task.task];
      deaths.push_back({ending.gone.pid, ending.gone.end, wanted.alone});
      text += blame_text(wanted.task.task, deaths);
    }
    if (policy_.ranks && wanted.status == TaskStatus::kFailed) rank_failure_ = failure_text(ended.task, text);
    error = cause_json(wanted.cause, text, ending.gone.log);
    ended.result = error;
  }
  if (policy_.ranks && wanted.status == TaskStatus::kFailed && wanted.cause == Cause::kNone) {
    blame_rank(ended.task, ended.result);
  }
  if (!deaths_.empty()) deaths_.erase(wanted.task.task);
  publish(ended);
}

void Supervisor::hold_result(const action::HoldResult& wanted, Ending* ending) {
  HeldResult& held = held_results_[wanted.slot];
  held.payload = ending->report->payload;
  held.tensors = ending->report->tensors;
  held.report = *ending->report;
  held.report.payload = held.payload;
  held.report.tensors = held.tensors;
  held.ending = {std::move(ending->task), &held.report, {}};
}

// The first rank that failed is why all others end: its traceback, or its last words, are shown in full.
void Supervisor::blame_rank(TaskId rank, std::string_view error) {
  rank_failure_ = "rank " + std::to_string(rank) + " failed";
  notice(Notice::Kind::kError, rank_failure_ + "; the others are ended" + last_words(error));
}

// Once for each attempt: what follows from the first failure says nothing new.
void Supervisor::announce_restart(const action::RetryTask& wanted, std::string_view reason, const TaskReport* report) {
  if (std::exchange(announced_, wanted.task.attempt) == wanted.task.attempt) return;
  rank_failure_ = failure_text(wanted.task.task, reason);
  const bool has_words = wanted.cause == Cause::kNone && report != nullptr;
  notice(Notice::Kind::kWarning,
         rank_failure_ + ": " + restart_text(wanted.task.attempt) + (has_words ? last_words(report->payload) : ""));
}

std::string Supervisor::restart_text(int attempt) const {
  const std::uint64_t ranks = setup_.spec->shard.value_or(Shard{}).count * static_cast<std::uint64_t>(policy_.workers);
  return (ranks == 1 ? "it starts" : "all " + std::to_string(ranks) + " ranks start") + " again, " +
         std::to_string(attempt) + " of " + std::to_string(policy_.most_restarts());
}

void Supervisor::retry_task(const action::RetryTask& wanted, Ending* ending) {
  std::string reason = cause_text(wanted.cause, policy_, wanted.slot, why_gone(wanted.slot, wanted.cause, *ending));
  const TaskReport* report = ending->report;
  if (wanted.cause == Cause::kNone && report != nullptr) {
    const Json error = parse_escaped_json(report->payload);
    if (error.is_object()) reason = error.value("type", "") + ": " + error.value("message", "");
  }
  if (wanted.cause == Cause::kDeath) {
    deaths_[wanted.task.task].push_back({ending->gone.pid, ending->gone.end, wanted.alone});
  }
  const Nanos start = report != nullptr ? report->start : wall_now() - wanted.running;
  if (policy_.ranks) announce_restart(wanted, reason, report);
  publish(
      TaskRetried{wanted.task.task, wanted.task.attempt, wanted.slot, reason, start, wanted.running, policy_.ranks});
  inputs_.put_back({wanted.task, std::move(ending->task.input)});
}

}  // namespace mprun
