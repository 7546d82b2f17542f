// The supervisor's tasks: inputs read and held, tasks on their way to workers, and what becomes of them.
#include "supervise/supervisor.h"

#include <utility>

#include "json/json.h"
#include "json/json_text.h"
#include "supervise/cause_text.h"

namespace mprun {

InputSource::Pull Supervisor::pull_input(std::string* text) {
  if (setup_.first_input.empty()) return setup_.inputs->pull(text);
  *text = std::exchange(setup_.first_input, {});
  return InputSource::Pull::kItem;
}

void Supervisor::keep_input(InputSource::Pull pulled, TaskId task, std::string text) {
  if (pulled == InputSource::Pull::kBad) bad_[task] = std::exchange(text, "null");
  fresh_.push_back(std::move(text));
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
      keep_input(pulled, next_input_++, std::move(text));
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
    keep_input(pulled, *next, std::move(text));
    ++read.count;
  }
  read.ended = inputs_ended_ = read.count == 0 && shared.all_done();
  wanted_shared_ = read.count == 0 && !read.ended ? count : 0;
  if (wanted_shared_ == 0) post(read);
}

void Supervisor::perform(action::Assign& wanted) {
  std::vector<HandedTask> handed;
  handed.reserve(wanted.tasks.size());
  auto& queue = held(wanted.slot);
  const std::size_t before = queue.size();
  for (const TaskAttempt& task : wanted.tasks) queue.push_back({task, take_input(task.task)});
  for (std::size_t i = before; i < queue.size(); ++i) handed.push_back({queue[i].task, queue[i].input});
  pool_->assign(wanted.slot, handed);
}

void Supervisor::perform(action::TakeBack& wanted) {
  const std::uint32_t count = pool_->take_back(wanted.slot);
  auto& queue = held(wanted.slot);
  for (std::uint32_t i = 0; i < count && !queue.empty(); ++i) {
    back_[queue.back().task.task] = std::move(queue.back().input);
    queue.pop_back();
  }
  notice(Notice::Kind::kExplain,
         "took " + std::to_string(count) + " queued tasks back from worker " + std::to_string(wanted.slot));
  post(event::TakenBack{wanted.slot, count});
}

void Supervisor::on_result(int slot, const TaskReport& report) {
  auto& queue = held(slot);
  if (queue.empty()) return;
  await_own_sigterm(report.end);
  ending_ = std::move(queue.front());
  queue.pop_front();
  ++results_since_wait_;
  report_ = &report;
  TaskReport refused = report;
  const std::string reason = refusal(report);
  if (!reason.empty()) {
    refused.failed = true;
    refused.payload = reason;
    report_ = &refused;
  }
  post(event::TaskDone{slot, report_->failed, report.duration, may_be_from_outside(report.end)});
  report_ = nullptr;
}

// Why the outcome of the task that ends does not count, as an error object; empty if it does.
std::string Supervisor::refusal(const TaskReport& report) const {
  const char* type = "InputError";
  std::optional<std::string> reason;
  const auto bad = bad_.empty() ? bad_.end() : bad_.find(ending_.task.task);
  if (bad != bad_.end()) {  // its input was no input: that overrides any outcome
    reason = bad->second;
  } else if (!report.failed && !report.tensors.empty()) {
    type = "TensorError";
    reason = setup_.check_tensors(ending_.task.task, ending_.input, report.tensors);
  }
  if (!reason) return "";
  std::string text = std::string(R"({"type":")") + type + R"(","message":)";
  append_json_string(&text, *reason);
  return text + R"(,"traceback":null})";
}

// A text that says why the worker of a task is gone; of one that took too long, where it was.
template <typename Ended>
std::string Supervisor::why_gone(const Ended& task) const {
  const auto hung = hung_.find(task.slot);
  const bool explained = task.cause == Cause::kHang || task.cause == Cause::kMemory || task.cause == Cause::kTaskLimit;
  if (hung != hung_.end() && explained) return hung->second;
  return task.cause == Cause::kTaskLimit ? "" : gone_why_;
}

void Supervisor::perform(action::EndTask& wanted) {
  TaskEnded ended;
  std::string error;
  ended.task = wanted.task.task;
  ended.status = wanted.status;
  ended.input = ending_.input;
  ended.worker = wanted.slot;
  ended.attempt = wanted.task.attempt;
  ended.sent = ending_.input.size();
  ended.end = gone_end_;
  if (report_ != nullptr) {
    ended.start = report_->start;
    ended.duration = report_->duration;
    ended.received = report_->payload.size();
    received_ += ended.received;
    ended.end = report_->end;
  } else {
    ended.start = wall_now() - wanted.running;
    ended.duration = wanted.running;
  }
  if (report_ != nullptr && wanted.cause == Cause::kNone) {
    ended.result = report_->payload;
    if (wanted.status == TaskStatus::kOk) ended.tensors = report_->tensors;
  } else {
    std::string text = cause_text(wanted.cause, policy_, wanted.slot, why_gone(wanted));
    if (wanted.cause == Cause::kDeath && wanted.status == TaskStatus::kFailed) {
      auto& deaths = deaths_[wanted.task.task];
      deaths.push_back({gone_pid_, gone_end_, wanted.alone});
      text += blame_text(wanted.task.task, deaths);
    }
    error = cause_json(wanted.cause, text, gone_log_);
    ended.result = error;
  }
  if (policy_.ranks && wanted.status == TaskStatus::kFailed && wanted.cause == Cause::kNone) blame_rank(ended);
  if (!deaths_.empty()) deaths_.erase(wanted.task.task);
  publish(ended);
}

// The first rank that failed is why all others end: its traceback, or its last words, are shown in full.
void Supervisor::blame_rank(const TaskEnded& ended) {
  const Json error = parse_json(ended.result);
  if (!error.is_object()) return;
  std::string text = "rank " + std::to_string(ended.worker) + " failed; the others are ended";
  for (const char* key : {"traceback", "log", "stderr"}) {
    if (!error.contains(key) || !error[key].is_string() || error[key].get_ref<const std::string&>().empty()) continue;
    text += "\n" + error[key].get<std::string>();
    break;
  }
  while (text.back() == '\n') text.pop_back();
  notice(Notice::Kind::kError, text);
}

void Supervisor::perform(action::RetryTask& wanted) {
  std::string reason = cause_text(wanted.cause, policy_, wanted.slot, why_gone(wanted));
  if (wanted.cause == Cause::kNone && report_ != nullptr) {
    const Json error = parse_json(report_->payload);
    if (error.is_object()) reason = error.value("type", "") + ": " + error.value("message", "");
  }
  if (wanted.cause == Cause::kDeath) deaths_[wanted.task.task].push_back({gone_pid_, gone_end_, wanted.alone});
  const Nanos start = report_ != nullptr ? report_->start : wall_now() - wanted.running;
  publish(TaskRetried{wanted.task.task, wanted.task.attempt, wanted.slot, reason, start, wanted.running});
  back_[wanted.task.task] = std::exchange(ending_.input, {});
}

std::string Supervisor::take_input(TaskId task) {
  const auto it = back_.find(task);
  if (it != back_.end()) {
    std::string text = std::move(it->second);
    back_.erase(it);
    return text;
  }
  std::string text = std::move(fresh_.front());  // fresh tasks are handed out in order
  fresh_.pop_front();
  return text;
}

}  // namespace mprun
