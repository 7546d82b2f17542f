// Why nothing has moved for long, where nothing is proved: rules of the table.
#include <algorithm>
#include <cmath>
#include <csignal>

#include "watch/causes/cause_rules.h"
#include "watch/sample/trace_access.h"
#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

constexpr std::uint64_t kTermBit = std::uint64_t{1} << (SIGTERM - 1);

// The first stopped thread that matches.
template <typename Matches>
std::optional<Explanation> find_stopped(const Evidence& evidence, const Matches& matches) {
  const JudgedThread* thread = find_thread(
      evidence, [&](const JudgedThread& any) { return any.wait.kind == WaitKind::kStopped && matches(any); });
  if (thread == nullptr) return std::nullopt;
  const std::string pid = std::to_string(thread->sample->pid);
  return Explanation{"process " + pid + " was stopped (SIGSTOP, Ctrl-Z or a debugger), and others wait for it",
                     "kill -CONT " + pid};
}

// If a process may act by itself (a handler, a timer), even a wait within the tree is not for ever.
bool is_of_its_own(const JudgedThread& thread, const TreeSnapshot::Process* process) {
  return process != nullptr && !process->acts_alone.empty() &&
         thread.wait.why_live == "its process " + process->acts_alone;
}

bool is_outside(const Evidence& evidence, const JudgedThread& thread) {
  switch (thread.wait.kind) {
    case WaitKind::kPipeRead:
    case WaitKind::kPipeWrite:
    case WaitKind::kSocket:
    case WaitKind::kPoll:
    case WaitKind::kFileLock:
    case WaitKind::kSemaphore:
    case WaitKind::kMessageRead:
    case WaitKind::kMessageWrite:
    case WaitKind::kSignal:
      return !thread.wait.why_live.empty() && !is_of_its_own(thread, evidence.snapshot->process(thread.sample->pid));
    default:
      return false;
  }
}

// What mprun may not see does not show that a thread waits for the outside.
bool lacks_access(const Evidence& evidence, const JudgedThread& thread) {
  return !evidence.snapshot->blind_spot().empty() && thread.wait.why_live == evidence.snapshot->blind_spot();
}

// The first thread that waits for something outside and matches.
template <typename Matches>
std::optional<Explanation> find_outside(const Evidence& evidence, const Matches& matches) {
  const JudgedThread* thread =
      find_thread(evidence, [&](const JudgedThread& any) { return is_outside(evidence, any) && matches(any); });
  if (thread == nullptr) return std::nullopt;
  return Explanation{thread_text(*thread) + " waits for something outside (" + to_string(thread->wait.kind) + ": " +
                     thread->wait.why_live + ")"};
}

// "loop() at train.py:6", or a function in C; empty: not known.
std::string place_of_loop(const Evidence& evidence, pid_t tid) {
  if (const auto python = evidence.python.find(tid); python != evidence.python.end()) {
    const auto& frames = python->second;
    const auto own = std::find_if(frames.begin(), frames.end(),
                                  [](const PythonFrame& frame) { return !is_library_file(frame.file); });
    const PythonFrame& frame = own == frames.end() ? frames.front() : *own;
    return frame.function + " at " + frame.file + ":" + std::to_string(frame.line);
  }
  const auto native = evidence.native.find(tid);
  if (native == evidence.native.end()) return "";
  const auto own = std::find_if(native->second.begin(), native->second.end(), [](const std::string& frame) {
    return frame.ends_with(')') && frame.find("(libc.so.6)") == std::string::npos;
  });
  return own == native->second.end() ? "" : *own;
}

std::string rate_text(double per_second) {
  if (per_second >= 1.5) return std::to_string(std::lround(per_second)) + " times a second";
  const auto seconds = std::lround(1 / per_second);
  return seconds <= 1 ? "every second" : "every " + std::to_string(seconds) + " s";
}

}  // namespace

// For when it is assumed that no process continues what was stopped.
std::optional<Explanation> stopped_for_ever(const Evidence& evidence) {
  return find_stopped(evidence, [](const JudgedThread& thread) { return !thread.live; });
}

std::optional<Explanation> process_stopped(const Evidence& evidence) {
  return find_stopped(evidence, [](const JudgedThread&) { return true; });
}

// Children that die as soon as they are started, and are started again.
std::optional<Explanation> respawn_loop(const Evidence& evidence) {
  const RecordedDeath* last = evidence.respawner == 0 ? nullptr : last_death_below(evidence, evidence.respawner);
  if (last == nullptr) return std::nullopt;
  return Explanation{"process " + std::to_string(evidence.respawner) +
                     " starts workers again and again, and each of them dies: the last one, process " +
                     std::to_string(last->pid) + ", with " + to_string(last->end)};
}

// A process waits for the end of another, which was sent SIGTERM and goes on.
std::optional<Explanation> ignores_termination(const Evidence& evidence) {
  const auto goes_on = [&](const Waker& waker) {
    const TreeSnapshot::Process* child = evidence.snapshot->process(waker.pid);
    return child != nullptr && ((child->ignored_signals | child->caught_signals) & kTermBit) != 0 &&
           evidence.history->was_sent_sigterm(child->pid);
  };
  for (const JudgedThread& thread : evidence.judgement->threads) {
    const auto& children = thread.wait.wakers;
    const auto child = std::find_if(children.begin(), children.end(), goes_on);
    if (thread.wait.kind != WaitKind::kChild || child == children.end()) continue;
    const std::string pid = std::to_string(child->pid);
    const bool ignored = (evidence.snapshot->process(child->pid)->ignored_signals & kTermBit) != 0;
    return Explanation{"process " + pid + (ignored ? " ignores" : " catches") + " SIGTERM and goes on, while process " +
                           std::to_string(thread.sample->pid) + " waits for its end",
                       "kill -KILL " + pid + "; in Python: process.kill() where terminate() did not help"};
  }
  return std::nullopt;
}

std::optional<Explanation> external_wait(const Evidence& evidence) {
  return find_outside(evidence, [&](const JudgedThread& thread) { return !lacks_access(evidence, thread); });
}

// A loop that sleeps between its looks, or waits with a limit of time.
std::optional<Explanation> polls_in_vain(const Evidence& evidence) {
  const auto wakes_up = [&](const JudgedThread& thread) {
    const auto wakeups = evidence.wakeups.find(thread.sample->tid);
    const bool may_go_on = thread.wait.kind == WaitKind::kRunning || thread.wait.kind == WaitKind::kTimer;
    return may_go_on && wakeups != evidence.wakeups.end() && wakeups->second > 0;
  };
  const JudgedThread* polls = find_thread(evidence, [&](const JudgedThread& thread) {
    return wakes_up(thread) && !place_of_loop(evidence, thread.sample->tid).empty();
  });
  if (polls == nullptr || !evidence.snapshot->blind_spot().empty()) return std::nullopt;
  const pid_t tid = polls->sample->tid;
  std::string text =
      thread_text(*polls) + " wakes up " + rate_text(evidence.wakeups.at(tid)) + " in " + place_of_loop(evidence, tid) +
      (evidence.python.count(tid) != 0 ? ", and has found nothing that would let it go on"
                                       : ", and waits there again each time; what it decides in between is not seen");
  if (const RecordedDeath* dead = last_death_below(evidence, polls->sample->pid)) {
    text += "; process " + std::to_string(dead->pid) + ", which it had started, ended with " + to_string(dead->end);
  }
  return Explanation{std::move(text)};
}

// Not a cause, but the reason why none is known.
std::optional<Explanation> not_seen(const Evidence& evidence) {
  for (const auto& [pid, process] : evidence.snapshot->processes()) {
    if (!process.hidden) continue;
    const AccessProblem problem = access_problem_of(evidence.snapshot->proc(), pid, "mprun");
    return Explanation{"nothing can be proved, because mprun may not look at process " + std::to_string(pid) + " (" +
                           process.name + "): " + problem.why,
                       problem.cure};
  }
  if (!evidence.snapshot->blind_spot().empty()) {
    return Explanation{"nothing can be proved: " + evidence.snapshot->blind_spot()};
  }
  for (const JudgedThread& thread : evidence.judgement->threads) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    if (!is_of_its_own(thread, process)) continue;
    return Explanation{"nothing can be proved of process " + std::to_string(process->pid) + ", which " +
                       process->acts_alone + "; all threads wait"};
  }
  return std::nullopt;
}

std::optional<Explanation> not_proved(const Evidence& evidence) {
  const JudgedThread* thread =
      find_thread(evidence, [](const JudgedThread& any) { return !any.wait.why_live.empty(); });
  if (thread == nullptr) return Explanation{"all threads wait"};
  if (thread->wait.kind == WaitKind::kRunning) {
    return Explanation{"no thread has got anywhere, though " + thread_text(*thread) + " runs now and then"};
  }
  return Explanation{"all threads wait, and of " + thread_text(*thread) +
                     " it cannot be said that it waits for ever: " + thread->wait.why_live};
}

std::optional<Explanation> late_while_stopped(const Evidence& evidence) {
  return find_stopped(evidence, [&](const JudgedThread& thread) { return thread.sample->tid == evidence.late; });
}

std::optional<Explanation> late_for_outside(const Evidence& evidence) {
  return find_outside(evidence, [&](const JudgedThread& thread) { return thread.sample->tid == evidence.late; });
}

std::optional<Explanation> not_in_time(const Evidence& evidence) {
  const JudgedThread* thread =
      find_thread(evidence, [&](const JudgedThread& any) { return any.sample->tid == evidence.late; });
  if (thread == nullptr) return Explanation{"the thread is not there any more"};
  if (thread->wait.kind == WaitKind::kRunning) return Explanation{thread_text(*thread) + " still runs"};
  return Explanation{thread_text(*thread) + " waits (" + to_string(thread->wait.kind) + "), which may end by itself"};
}

}  // namespace mprun
