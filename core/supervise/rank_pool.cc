#include "supervise/rank_pool.h"

#include <csignal>
#include <utility>

#include "job/json_text.h"
#include "launch/teardown.h"
#include "supervise/result_frame.h"

namespace mprun {

RankPool::RankPool(LaunchPlan plan, WorkerPoolListener* listener)
    : plan_(std::move(plan)),
      listener_(listener),
      master_port_(find_free_port()),
      slots_(static_cast<std::size_t>(plan_.spec->processes)),
      launcher_(make_launcher(plan_, this)) {}

RankPool::~RankPool() {
  for (Slot& slot : slots_) close_channels(&slot);
}

void RankPool::close_channels(Slot* slot) {
  if (slot->channel) plan_.loop->remove(slot->channel->fd());
  if (slot->results) plan_.loop->remove(slot->results.get());
  slot->channel.reset();
  slot->results.reset();
}

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
  close_channels(&slot);
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

Result<void> RankPool::open_channels(int number, LaunchRequest* request) {
  auto opened = open_worker_channels(plan_.run_dir, number, request);
  if (!opened) return opened.error();
  Slot& slot = at(number);
  close_channels(&slot);
  slot.channel.emplace(std::move(opened->channel));
  slot.results = std::move(opened->results);
  slot.log_offset = opened->log_offset;
  const auto on_event = [this, number](std::uint32_t events) { on_channel(number, events); };
  if (auto added = plan_.loop->add(slot.channel->fd(), 0, on_event); !added) {
    return added;
  }
  return plan_.loop->add(slot.results.get(), EPOLLIN, [this, number](std::uint32_t) { drain(number); });
}

std::optional<LaunchRequest> RankPool::prepare_launch(int number) {
  Slot& slot = at(number);
  if (!slot.running) return std::nullopt;
  LaunchRequest request;
  request.slot = number;
  request.environment = slot_environment(*plan_.spec, number);
  request.environment["MPRUN_TASK"] = std::to_string(slot.task.task);
  request.environment["MPRUN_ATTEMPT"] = std::to_string(slot.task.attempt);
  request.environment.merge(rank_environment(*plan_.spec, number, master_port_));
  if (auto opened = open_channels(number, &request); !opened) {
    plan_.loop->at(0, [this, text = opened.error().message] { on_launch_failed("cannot start a rank: " + text); });
    return std::nullopt;
  }
  if (plan_.spec->start_method == StartMethod::kSpawn) {
    slot.channel->send_frame(MPRUN_START, start_config(plan_, "rank", number));
    flush(number);
  }
  return request;
}

void RankPool::on_channel(int number, std::uint32_t events) {
  Slot& slot = at(number);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
    plan_.loop->remove(slot.channel->fd());  // it has closed its end; epoll would report that for ever
  } else {
    flush(number);
  }
}

// A frame may be longer than the socket takes at once.
void RankPool::flush(int number) {
  Slot& slot = at(number);
  if (!slot.channel) return;
  if (!slot.channel->flush()) {
    plan_.loop->remove(slot.channel->fd());  // it is dying; its end will be reported
    return;
  }
  plan_.loop->modify(slot.channel->fd(), slot.channel->wants_to_write() ? EPOLLOUT : 0U);
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
  if (!slot.results) return;
  auto state = FrameReader::Fill::kMore;
  for (int fills = 0; fills < FrameReader::kMostFills && state == FrameReader::Fill::kMore; ++fills) {
    state = slot.reader.fill(slot.results.get());
    Frame frame;
    while (!slot.foreign && slot.reader.next(&frame)) on_frame(number, frame);
  }
  if (slot.reader.corrupt()) slot.foreign = true;
  if (!slot.foreign && state != FrameReader::Fill::kClosed) return;
  plan_.loop->remove(slot.results.get());
  slot.results.reset();
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
  if (end.signal == 0 && end.exit_code == 0 && slot.reader.mid_frame()) slot.foreign = true;
  if (process) listener_->on_process_ended(number, process.pid(), "rank", end, true);
  end_rank(number, end);
}

std::string RankPool::explain_death(int number, ProcessEnd end) const {
  std::string json = R"({"type":")";
  json += end.signal != 0 ? "Signal" : "ExitCode";
  json += R"(","message":)";
  std::string message = "rank " + std::to_string(number) + " ended with " + to_string(end);
  if (at(number).foreign) message.append(" after it ").append(kWroteNoResult);
  append_json_string(&json, message);
  json += R"(,"traceback":null,"log":)";
  const std::string path = plan_.run_dir + "/logs/worker-" + std::to_string(number) + ".err";
  append_json_string(&json, log_tail(path, at(number).log_offset));
  return json + "}";
}

void RankPool::end_rank(int number, ProcessEnd end) {
  Slot& slot = at(number);
  slot.running = false;
  slot.process = {};
  close_channels(&slot);
  const bool failed = slot.foreign || end.signal != 0 || end.exit_code != 0;
  std::string payload = slot.value.empty() ? "null" : slot.value;
  if (failed) payload = slot.foreign || slot.error.empty() ? explain_death(number, end) : slot.error;
  listener_->on_result(number, {failed, slot.start, monotonic_now() - slot.began, payload, end, slot.tensors});
}

}  // namespace mprun
