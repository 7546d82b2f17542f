#include "supervise/task_pool.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/run_layout.h"
#include "launch/teardown.h"
#include "supervise/result_frame.h"

namespace mprun {
namespace {

// A worker whose pipe was closed from its side either ends within this time or is ended.
constexpr Nanos kClosedPatience = kNanosPerSecond;
// Payload of one frame of tasks, at least one task: bounds what a worker has to decode at once.
constexpr std::size_t kFrameBytes = std::size_t{128} * 1024;
constexpr std::string_view kClosed = "closed the descriptors that connect it with mprun";

template <typename T>
void append_bytes(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

TaskPool::TaskPool(LaunchPlan plan, ClaimTable claims, WorkerPoolListener* listener)
    : plan_(std::move(plan)),
      claims_(std::move(claims)),
      listener_(listener),
      slots_(static_cast<std::size_t>(plan_.spec->processes)),
      connections_(slots_.size()) {
  plan_.claims = claims_.fd();
  launcher_ = make_launcher(plan_, this);
}

// --- commands ---

void TaskPool::start(int number) {
  Slot& slot = at(number);
  slot = Slot{};
  slot.wanted = true;
  connection(number).reset();
  __atomic_store_n(&claims_.slot(number)->claim, 0, __ATOMIC_RELEASE);
  // Deferred, because a launcher may answer at once.
  plan_.loop->at(0, [this, number] {
    if (at(number).wanted) launcher_->launch(number);
  });
}

std::optional<LaunchRequest> TaskPool::prepare_launch(int number) {
  if (!at(number).wanted) return std::nullopt;
  listener_->on_launch(number);
  LaunchRequest request;
  request.slot = number;
  request.environment = slot_environment(*plan_.spec, number);
  WorkerConnection& worker = connection(number);
  const auto opened =
      worker.open(plan_, &request, {[this, number] { on_closed(number); }, [this, number] { on_readable(number); }});
  if (!opened) {
    worker.close();
    plan_.loop->at(0, [this, text = opened.error().message] { on_launch_failed("cannot start a worker: " + text); });
    return std::nullopt;
  }
  if (plan_.spec->start_method == StartMethod::kSpawn) {  // a forked worker has all of it from its host
    worker.sender().send_frame(MPRUN_START, start_config(plan_, "worker", number));
    worker.flush();
  }
  return request;
}

void TaskPool::assign(int number, const std::vector<HandedTask>& tasks) {
  Slot& slot = at(number);
  WorkerConnection& worker = connection(number);
  if (!worker.is_open()) return;
  FrameSender& sender = worker.sender();
  const std::size_t chunk = static_cast<std::size_t>(plan_.spec->chunk_size.value_or(1 << 20));
  mprun_claim_grant(claims_.slot(number), static_cast<std::uint32_t>(tasks.size()));
  std::string& out = sender.buffer();
  for (std::size_t begin = 0; begin < tasks.size();) {
    std::size_t end = begin;
    for (std::size_t bytes = 0; end < tasks.size() && end - begin < chunk && (end == begin || bytes < kFrameBytes);) {
      bytes += tasks[end++].input.size() + sizeof(mprun_task);
    }
    sender.begin_frame(MPRUN_TASKS);
    append_bytes(&out, mprun_tasks{slot.next_position, static_cast<std::uint32_t>(end - begin)});
    for (std::size_t i = begin; i < end; ++i) {
      const TaskAttempt& task = tasks[i].task;
      append_bytes(&out, mprun_task{task.task, static_cast<std::uint32_t>(task.attempt), tasks[i].has_no_input});
    }
    for (std::size_t i = begin; i < end; ++i) {
      out += i == begin ? '[' : ',';
      out += tasks[i].input;
    }
    out += ']';
    sender.end_frame();
    for (std::size_t i = begin; i < end; ++i) slot.expected.push_back(slot.next_position++);
    begin = end;
  }
  worker.flush();
}

std::uint32_t TaskPool::take_back(int number) {
  const std::uint32_t count = mprun_claim_take_back(claims_.slot(number));
  auto& expected = at(number).expected;
  expected.erase(expected.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, expected.size())),
                 expected.end());
  return count;
}

void TaskPool::retire(int number) {
  at(number).retired = true;
  WorkerConnection& worker = connection(number);
  if (!worker.is_open()) return;
  worker.sender().send_frame(MPRUN_STOP, "");
  worker.flush();
}

void TaskPool::signal(int number, int signal_number) {
  Slot& slot = at(number);
  if (!slot.wanted) return;
  slot.signalled = true;
  if (!slot.process) {
    plan_.loop->at(0, [this, number, signal_number] {  // it may have been launched by then
      at(number).process ? signal(number, signal_number) : never_launched(number);
    });
  } else {
    signal_group(slot.process, signal_number);
  }
}

// --- what happened ---

void TaskPool::gone_later(int number) {
  plan_.loop->at(0, [this, number] { never_launched(number); });
}

// A process that is still launched for this slot is killed at once.
void TaskPool::never_launched(int number) {
  Slot& slot = at(number);
  if (!slot.wanted || slot.process) return;
  slot.wanted = false;
  connection(number).close();
  listener_->on_gone(number, {});
}

void TaskPool::on_launched(int number, const ProcessRef& process) {
  if (!at(number).wanted) {
    process.signal(SIGKILL);
    return;
  }
  at(number).process = process;
  listener_->on_process_started(number, process.pid());
  if (!at(number).verdict.empty()) end_given_up(number);
}

void TaskPool::on_launch_failed(const std::string& reason) {
  listener_->on_start_failed(reason);
  for (int number = 0; number < static_cast<int>(slots_.size()); ++number) {
    if (at(number).wanted && !at(number).process) gone_later(number);
  }
}

void TaskPool::on_closed(int number) {
  if (at(number).verdict.empty()) give_up(number, kClosed);
}

void TaskPool::on_readable(int number) {
  Slot& slot = at(number);
  WorkerConnection& worker = connection(number);
  const auto state = worker.fill();
  Frame frame;
  while (slot.wanted && !slot.foreign && worker.reader().next(&frame)) on_frame(number, frame);
  const bool corrupt = worker.reader().corrupt() || slot.foreign;
  if (!corrupt && state != FrameReader::Fill::kClosed) return;
  worker.ignore_pipe();
  give_up(number, corrupt ? kWroteNoResult : kClosed);
}

void TaskPool::give_up(int number, std::string_view verdict) {
  at(number).verdict = verdict;
  end_given_up(number);
}

// A worker whose pipe is closed is usually just ending. If not, it can never report again.
void TaskPool::end_given_up(int number) {
  const Slot& slot = at(number);
  if (!slot.process) return;  // its pipe closed before its host reported it: on_launched() ends it
  const Nanos when = slot.verdict == kWroteNoResult ? 0 : monotonic_now() + kClosedPatience;
  plan_.loop->at(when, [this, number, process = slot.process] {
    if (!(at(number).process == process) || at(number).retired || process.has_ended()) return;
    at(number).broke_channels = true;
    signal_group(process, SIGKILL);
  });
}

void TaskPool::on_frame(int number, const Frame& frame) {
  Slot& slot = at(number);
  if (frame.type == MPRUN_RESULT) {
    on_result(number, frame.payload);
  } else if (frame.type == MPRUN_READY && !slot.ready) {
    slot.ready = true;
    listener_->on_ready(number);
  } else if (frame.type == MPRUN_STAGE && !slot.ready) {
    listener_->on_stage(number, frame.payload);
  } else if (frame.type == MPRUN_HELLO) {
    any_said_hello_ = true;
  } else if (frame.type == MPRUN_START_FAILED && !slot.ready) {
    listener_->on_start_failed(explain_start_failure(frame.payload));
  } else if (frame.type == MPRUN_START_FAILED) {
    slot.foreign = true;
  }
}

void TaskPool::on_result(int number, std::string_view payload) {
  Slot& slot = at(number);
  const auto result = parse_result(payload);
  if (!result || slot.expected.empty() || slot.expected.front() != result->head.position) {
    slot.foreign = true;  // a result of no task of its own, or no value: better none than a wrong one
    return;
  }
  slot.expected.pop_front();
  launcher_->task_done();
  const mprun_result& head = result->head;
  listener_->on_result(
      number,
      {head.failed != 0, head.start, head.duration, result->json, {}, result->tensors, connection(number).filled_at()});
}

void TaskPool::drain(int number) {
  const Slot& slot = at(number);
  if (!connection(number).has_pipe()) return;
  connection(number).drain([&slot] { return !slot.foreign; },
                           [this, number](const Frame& frame) { on_frame(number, frame); });
}

void TaskPool::on_process_gone(int number, const ProcessRef& process, ProcessEnd end) {
  Slot& slot = at(number);
  if (!slot.wanted || !(slot.process == process)) return;  // one that was ended before it was ours
  if (process) kill_leftovers(process);
  drain(number);
  const std::uint32_t untouched = mprun_claim_take_back(claims_.slot(number));
  const bool started = slot.expected.size() > untouched;
  const bool expected = slot.signalled || (slot.retired && end.signal == 0 && end.exit_code == 0);
  std::string why =
      "worker " + std::to_string(number) + " (pid " + std::to_string(process.pid()) + ") ended with " + to_string(end);
  if (slot.broke_channels || (end.signal == 0 && end.exit_code == MPRUN_EXIT_CHANNEL_LOST)) {
    why.append(" after it ").append(slot.verdict.empty() ? kClosed : slot.verdict);
  }
  const bool no_hello =
      !any_said_hello_ && !slot.signalled && !slot.broke_channels && plan_.spec->start_method == StartMethod::kSpawn;
  const bool never_python = no_hello && !may_be_from_outside(end);
  if (no_hello && !never_python) why += " before " + plan_.spec->python + " said hello, as a Python of ours does,";
  if (never_python) {
    why = plan_.spec->python + " did not start as a Python: it ended with " + to_string(end) +
          " before it said hello\n  set \"python\" (--python) to a CPython 3.11 or later";
  }
  const std::string log =
      expected ? "" : log_tail(log_file(plan_.run_dir, worker_name(number), "err"), connection(number).log_offset());
  const bool broke_channels = slot.broke_channels;
  slot.wanted = false;
  slot.process = {};
  connection(number).close();
  if (process) listener_->on_process_ended(number, process.pid(), "worker", end, expected);
  if (never_python) listener_->on_start_failed(why);
  listener_->on_gone(number, {started, broke_channels, end, std::move(why), log, process.pid()});
}

}  // namespace mprun
