#include "supervise/rank_pool.h"

#include <csignal>
#include <utility>

#include "base/run_layout.h"
#include "launch/teardown.h"
#include "supervise/cause_text.h"
#include "supervise/result_frame.h"

namespace mprun {

RankPool::RankPool(LaunchPlan plan, WorkerPoolListener* listener)
    : plan_(std::move(plan)),
      listener_(listener),
      attempt_(plan_.spec, plan_.run_dir),
      slots_(static_cast<std::size_t>(plan_.spec->processes)),
      launcher_(make_launcher(plan_, this)),
      connections_(slots_.size()) {}

void RankPool::start(int number) {
  plan_.loop->at(0, [this, number] { listener_->on_ready(number); });
}

void RankPool::retire(int number) {
  plan_.loop->at(0, [this, number] { listener_->on_gone(number, {}); });
}

void RankPool::signal(int number, int signal_number) {
  const Slot& slot = at(number);
  if (!slot.running) return;
  if (slot.process) {
    signal_group(slot.process, signal_number);
    return;
  }
  plan_.loop->at(0, [this, number, signal_number] {
    if (!at(number).running) return;
    at(number).process ? signal(number, signal_number) : end_rank(number, {0, SIGTERM});
  });
}

void RankPool::assign(int number, const std::vector<HandedTask>& tasks) {
  Slot& slot = at(number);
  connection(number).reset();
  slot = Slot{};
  slot.running = true;
  slot.task = tasks.front().task;
  slot.start = wall_now();
  slot.began = monotonic_now();
  // Deferred, because a launcher may answer at once.
  plan_.loop->at(0, [this, number] {
    if (at(number).running) launcher_->launch(number);
  });
}

std::optional<LaunchRequest> RankPool::prepare_launch(int number) {
  const Slot& slot = at(number);
  if (!slot.running) return std::nullopt;
  if (attempt_.begin(slot.task.attempt)) listener_->on_attempt();
  LaunchRequest request;
  request.slot = number;
  request.environment = slot_environment(*plan_.spec, number);
  request.environment["MPRUN_TASK"] = std::to_string(slot.task.task);
  request.environment["MPRUN_ATTEMPT"] = std::to_string(slot.task.attempt);
  request.environment.merge(attempt_.prepare(number));
  WorkerConnection& rank = connection(number);
  // Its end will be reported by its launcher.
  const auto opened = rank.open(plan_, &request, {[] {}, [this, number] { drain(number); }});
  if (!opened) {
    plan_.loop->at(0, [this, text = opened.error().message] { on_launch_failed("cannot start a rank: " + text); });
    return std::nullopt;
  }
  if (plan_.spec->start_method == StartMethod::kSpawn) {
    rank.sender().send_frame(MPRUN_START, start_config(plan_, "rank", number));
    rank.flush();
  }
  return request;
}

void RankPool::on_launched(int number, const ProcessRef& process) {
  if (!at(number).running) {
    process.signal(SIGKILL);
    return;
  }
  at(number).process = process;
  listener_->on_process_started(number, process.pid());
  if (at(number).foreign) signal_group(process, SIGKILL);  // its pipe was faster than the report of its launch
}

void RankPool::on_launch_failed(const std::string& reason) {
  listener_->on_start_failed(reason);
  for (int number = 0; number < static_cast<int>(slots_.size()); ++number) signal(number, SIGTERM);
}

void RankPool::drain(int number) {
  Slot& slot = at(number);
  WorkerConnection& rank = connection(number);
  if (!rank.has_pipe()) return;
  const auto state =
      rank.drain([&slot] { return !slot.foreign; }, [this, number](const Frame& frame) { on_frame(number, frame); });
  if (rank.reader().corrupt()) slot.foreign = true;
  if (!slot.foreign && state != FrameReader::Fill::kClosed) return;
  rank.close_pipe();
  if (slot.foreign && slot.process) signal_group(slot.process, SIGKILL);  // it can never report again
}

void RankPool::on_frame(int number, const Frame& frame) {
  Slot& slot = at(number);
  if (frame.type == MPRUN_READY) {
    slot.ready = true;
  } else if (frame.type == MPRUN_START_FAILED && !slot.ready) {
    listener_->on_start_failed(explain_start_failure(frame.payload));
  } else if (frame.type == MPRUN_START_FAILED) {
    slot.foreign = true;
  } else if (frame.type == MPRUN_RESULT) {
    const auto result = parse_result(frame.payload);
    slot.foreign = !result.has_value();
    if (slot.foreign) return;
    if (result->head.failed != 0) {
      slot.error = result->json;
    } else {
      slot.tensors = result->tensors;
      slot.value = result->json;
    }
  }
}

void RankPool::on_process_gone(int number, const ProcessRef& process, ProcessEnd end) {
  Slot& slot = at(number);
  if (!slot.running || !(slot.process == process)) return;
  if (process) kill_leftovers(process);
  drain(number);
  // A rank that ended well leaves no partial frame: that would be a lost result, or bytes of another process.
  if (end.signal == 0 && end.exit_code == 0 && connection(number).reader().mid_frame()) slot.foreign = true;
  if (process) listener_->on_process_ended(number, process.pid(), "rank", end, true);
  end_rank(number, end);
}

std::string RankPool::explain_death(int number, ProcessEnd end) const {
  std::string message = "rank " + std::to_string(number) + " ended with " + to_string(end);
  RankError left;
  if (at(number).foreign) {
    message.append(" after it ").append(kWroteNoResult);
  } else if (const auto found = attempt_.error_of(number)) {
    left = *found;
    message.append(": ").append(left.message);
  }
  const std::string log = log_file(plan_.run_dir, worker_name(number), "err");
  return task_error(end.signal != 0 ? "Signal" : "ExitCode", message, left.traceback)
      .bytes("log", log_tail(log, connection(number).log_offset()))
      .text();
}

void RankPool::end_rank(int number, ProcessEnd end) {
  Slot& slot = at(number);
  slot.running = false;
  slot.process = {};
  connection(number).close();
  const bool failed = slot.foreign || end.signal != 0 || end.exit_code != 0;
  std::string payload = slot.value.empty() ? "null" : slot.value;
  if (failed) payload = slot.foreign || slot.error.empty() ? explain_death(number, end) : slot.error;
  const Nanos now = monotonic_now();
  listener_->on_result(number, {failed, slot.start, now - slot.began, payload, end, slot.tensors, now});
}

}  // namespace mprun
