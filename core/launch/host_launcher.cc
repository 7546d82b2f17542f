#include "launch/host_launcher.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/run_layout.h"
#include "json/json.h"
#include "launch/spawn_launcher.h"
#include "launch/teardown.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

// The weight of hosts that die in a row, with no task done between, at which the job is given up: three that died by
// themselves, or more of those that another process may have killed. It is less than for a slot (Scheduler): workers
// that were starting die with their host, and the report shall name the host.
constexpr int kMostHostDeaths = 15, kOwnHostDeath = 5, kOtherHostDeath = 1;
// How long the report of how a worker ended may take, after its end was seen.
constexpr Nanos kReportPatience = kNanosPerSecond;
// Forks asked for and not yet answered.
constexpr std::size_t kMostForking = 16;

}  // namespace

std::unique_ptr<Launcher> make_launcher(const LaunchPlan& plan, LauncherListener* listener) {
  if (plan.spec->start_method == StartMethod::kSpawn) return std::make_unique<SpawnLauncher>(plan, listener);
  return std::make_unique<HostLauncher>(plan, listener);
}

HostLauncher::~HostLauncher() {
  if (channel_) plan_.loop->remove(channel_->fd());
  for (const auto& [id, worker] : workers_) {
    if (worker.watched) plan_.loop->remove(worker.process.pidfd());
  }
}

void HostLauncher::launch(int slot) {
  if (failed_) return;
  if (!host_) start_host();
  waiting_.push_back(slot);
  if (ready_) send_waiting();
}

void HostLauncher::start_host() {
  auto pair = make_socket_pair();
  auto logs = open_logs(plan_.run_dir, kHostName);
  if (!pair || !logs) {
    failed_ = true;
    listener_->on_launch_failed(!pair ? pair.error().message : logs.error().message);
    return;
  }
  const int theirs = pair->theirs.get();
  const SpawnPlan spawn = python_plan(plan_, {}, theirs, theirs, logs->first.get(), logs->second.get());
  SpawnFailure failure;
  const pid_t pid = spawn_process(spawn, &failure);
  if (pid < 0) {
    failed_ = true;
    listener_->on_launch_failed(explain_spawn_failure(plan_, failure));
    return;
  }
  host_ = ProcessRef::of_child(pid);
  said_hello_ = ready_ = was_ready_ = false;
  reader_ = FrameReader();
  passed_.clear();
  channel_.emplace(std::move(pair->ours));
  channel_->send_frame(MPRUN_START, start_config(plan_, "host", -1));
  if (auto added = plan_.loop->add(channel_->fd(), EPOLLIN, [this](std::uint32_t events) { on_event(events); });
      !added) {
    listener_->on_launch_failed("cannot talk to the host: " + added.error().message);
  } else if (!channel_->flush()) {
    listener_->on_launch_failed(system_error("cannot talk to the host", errno).message);
  } else {
    watch_channel();  // the START frame may be larger than the socket's buffer
  }
  listener_->on_host_started(pid);
}

void HostLauncher::on_event(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) channel_->flush() ? send_waiting() : lose_host();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && channel_) on_readable();
}

void HostLauncher::on_readable() {
  const auto state = reader_.fill(channel_->fd(), &passed_);
  Frame frame;
  while (channel_ && reader_.next(&frame)) on_frame(frame);
  if (channel_ && (state == FrameReader::Fill::kClosed || reader_.corrupt())) {
    lose_host();  // its end follows; a host that only closed its channel is of no use
  }
}

void HostLauncher::on_frame(const Frame& frame) {
  if (frame.type == MPRUN_HELLO) {
    said_hello_ = true;
  } else if (frame.type == MPRUN_STAGE) {
    listener_->on_host_stage(frame.payload);
  } else if (frame.type == MPRUN_READY) {
    ready_ = was_ready_ = ever_ready_ = true;
    listener_->on_host_stage("");
    send_waiting();
  } else if (frame.type == MPRUN_START_FAILED) {
    failed_ = true;
    listener_->on_launch_failed(explain_start_failure(frame.payload));
  } else if (frame.type == MPRUN_FORKED || frame.type == MPRUN_EXITED) {
    const Json body = parse_json(frame.payload);
    if (!body.is_object()) return;
    const pid_t number = number_in(body, "pid", 0);
    const int slot = number_in(body, "slot", -1);
    if (frame.type == MPRUN_FORKED && forking_.erase(slot) == 0) return;  // none that was asked for
    if (frame.type == MPRUN_EXITED) {
      worker_exited(number, {number_in(body, "exit_code", 0), number_in(body, "signal", 0)});
      send(MPRUN_REAP, {reinterpret_cast<const char*>(&number), sizeof number});
    } else if (number > 0) {
      add_worker(slot, number);
    } else {
      listener_->on_launch_failed("the host cannot fork: " + text_in(body, "error", "unknown error"));
    }
    if (ready_) send_waiting();
  }
}

// Neither side may ever wait for the other with both sockets full: forks are requested a few at a time,
// and the loop waits for a socket that is full.
void HostLauncher::send_waiting() {
  while (ready_ && !waiting_.empty() && forking_.size() < kMostForking && !channel_->wants_to_write()) {
    const int slot = waiting_.front();
    const auto request = listener_->prepare_launch(slot);
    if (request) {
      const Json body = {{"slot", slot},
                         {"env", request->environment},
                         {"cpus", cpus_of(*plan_.spec, slot)},
                         {"nodes", nodes_of(*plan_.spec, slot)}};
      const auto sent = channel_->send_with_fds(
          MPRUN_FORK, body.dump(),
          {request->channel.get(), request->results.get(), request->out.get(), request->err.get()});
      if (sent == FrameSender::Sent::kBusy) break;
      if (sent == FrameSender::Sent::kGone) {
        lose_host();
        return;
      }
      forking_.insert(slot);
    }
    waiting_.pop_front();
  }
  watch_channel();
}

void HostLauncher::watch_channel() {
  const bool blocked = channel_->wants_to_write() || (!waiting_.empty() && ready_ && forking_.size() < kMostForking);
  plan_.loop->modify(channel_->fd(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void HostLauncher::send(std::uint16_t type, std::string_view payload) {
  if (!channel_) return;
  channel_->send_frame(type, payload);
  channel_->flush() ? watch_channel() : lose_host();
}

// The host can receive nothing any more. Usually it is dying; the next one does what is left.
void HostLauncher::lose_host() {
  plan_.loop->remove(channel_->fd());
  if (!finishing_) signal_group(host_, SIGKILL);
}

// Of the process that a host names, only what the kernel says about the pidfd is trusted.
Result<ProcessRef> HostLauncher::take_process(pid_t number) {
  if (passed_.empty()) return internal_error("it sent no pidfd");
  Fd pidfd = std::move(passed_.front());
  passed_.pop_front();
  auto process = ProcessRef::adopt(std::move(pidfd), number);
  if (!process || !*process) return process;
  const bool known = std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.number == number || (worker.process.pid() == process->pid() && worker.process.exists());
  });
  if (known || process->pid() == host_.pid())
    return internal_error("pid " + std::to_string(process->pid()) + " is another process of the job");
  if (!may_descend_from_us(*process)) {
    if (!process->exists()) return ProcessRef();
    return internal_error("pid " + std::to_string(process->pid()) + " does not descend from mprun");
  }
  return process;
}

void HostLauncher::add_worker(int slot, pid_t number) {
  auto process = take_process(number);
  if (!process) {
    failed_ = true;
    listener_->on_launch_failed("the host did not report which worker it has forked: " + process.error().message);
    return;
  }
  if (!*process) {  // it and its host have died, and another process has reaped it
    listener_->on_process_gone(slot, {}, {0, SIGKILL});
    return;
  }
  const std::uint64_t id = next_id_++;
  const bool watched =
      plan_.loop->add(process->pidfd(), EPOLLIN, [this, id](std::uint32_t) { on_worker_ended(id); }).has_value();
  workers_[id] = {slot, number, *process, watched};
  listener_->on_launched(slot, *process);
}

void HostLauncher::worker_exited(pid_t number, ProcessEnd end) {
  const auto known = std::find_if(workers_.begin(), workers_.end(),
                                  [number](const auto& entry) { return entry.second.number == number; });
  if (known != workers_.end() && number > 0) worker_gone(known->first, end);
}

void HostLauncher::worker_gone(std::uint64_t id, ProcessEnd end) {
  const auto ended = workers_.extract(id);
  if (ended.empty()) return;
  const Worker& worker = ended.mapped();
  if (worker.watched) plan_.loop->remove(worker.process.pidfd());
  listener_->on_process_gone(worker.slot, worker.process, end);
}

// Usually its host reports how it ended, or SIGCHLD does if the host has died. Neither comes if the host is stuck, or
// if the first process of an inner PID namespace inherits the worker.
void HostLauncher::on_worker_ended(std::uint64_t id) {
  Worker& worker = workers_.at(id);
  plan_.loop->remove(worker.process.pidfd());
  worker.watched = false;
  plan_.loop->at(monotonic_now() + kReportPatience, [this, id] {
    const auto known = workers_.find(id);
    if (known != workers_.end()) worker_gone(id, known->second.process.end().value_or(ProcessEnd{0, SIGKILL}));
  });
}

bool HostLauncher::child_gone(pid_t pid, ProcessEnd end) {
  if (host_ && pid == host_.pid()) {
    if (channel_) on_readable();  // the last frames it sent
    const bool expected = finishing_ || failed_;
    const bool was_ready = was_ready_;
    forget_host();
    listener_->on_host_gone(pid, end, expected);
    for (const int slot : std::exchange(forking_, {})) {
      if (expected || plan_.spec->kind == JobKind::kRanks) {  // a rank that may have begun is not run twice
        listener_->on_process_gone(slot, {}, end);
      } else {
        waiting_.push_front(slot);  // the next host will do it
      }
    }
    if (expected) return true;
    // A host that dies while it loads the script would do so again, unless it was killed or another host has loaded it.
    const bool hopeless = !was_ready && !ever_ready_ && !may_be_from_outside(end);
    deaths_ += may_be_from_outside(end) ? kOtherHostDeath : kOwnHostDeath;
    if (deaths_ >= kMostHostDeaths || hopeless) {
      host_died_early(end);
    } else if (!waiting_.empty()) {
      start_host();
    }
    return true;
  }
  const auto orphan = std::find_if(workers_.begin(), workers_.end(), [pid](const auto& entry) {
    return entry.second.process.pid() == pid && entry.second.process.exists();
  });
  if (orphan == workers_.end()) return false;
  worker_gone(orphan->first, end);  // its host died, so it became ours
  return true;
}

void HostLauncher::host_died_early(ProcessEnd end) {
  failed_ = true;
  std::string text;
  if (!said_hello_ && !ever_ready_ && !may_be_from_outside(end)) {
    text = plan_.spec->python + " did not start as a Python: it ended with " + to_string(end) +
           " before it said hello\n  set \"python\" (--python) to a CPython 3.11 or later";
  } else {
    text = "the host (" + plan_.spec->python + ", which forks the workers) ended with " + to_string(end) +
           (deaths_ > kOwnHostDeath
                ? " again and again" + std::string(ever_ready_ ? "" : " while it loaded the script or ran setup")
                : " while it loaded the script or ran setup");
  }
  const std::string tail = log_tail(log_file(plan_.run_dir, kHostName, "err"), 0);
  if (!tail.empty()) text += "\n  its last words:\n" + tail;
  listener_->on_launch_failed(text);
}

void HostLauncher::forget_host() {
  if (channel_) plan_.loop->remove(channel_->fd());
  channel_.reset();
  ready_ = false;
  host_ = {};
  for (auto& [id, worker] : workers_) worker.number = 0;  // the next host, in another namespace, may give it again
}

void HostLauncher::finish() {
  finishing_ = true;
  send(MPRUN_STOP, "");
}

void HostLauncher::kill_host() {
  finishing_ = true;
  if (host_) signal_group(host_, SIGKILL);
}

}  // namespace mprun
