// Why nothing has moved for long, where nothing is proved: rules as in causes.cc.
#include <algorithm>
#include <csignal>

#include "watch/cause_rules.h"
#include "watch/sight.h"

namespace mprun {
namespace {

using Rule = std::optional<HangCause> (*)(const Evidence&);

constexpr std::uint64_t kTermBit = std::uint64_t{1} << (SIGTERM - 1);

HangCause stopped_thread(const JudgedThread& thread) {
  const std::string pid = std::to_string(thread.sample->pid);
  return {"stopped", "process " + pid + " was stopped (SIGSTOP, Ctrl-Z or a debugger), and others wait for it",
          "kill -CONT " + pid};
}

std::optional<HangCause> stopped(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.wait.kind == WaitKind::kStopped) return stopped_thread(thread);
  }
  return std::nullopt;
}

// Children that die as soon as they are started, and are started again.
std::optional<HangCause> respawn_loop(const Evidence& evidence) {
  constexpr std::size_t kMany = 5;
  for (const auto& [pid, process] : evidence.world->processes()) {
    if (evidence.family->violent_deaths(pid, 0) < kMany) continue;
    const auto& deaths = evidence.family->deaths();
    const auto last = std::find_if(deaths.rbegin(), deaths.rend(), [parent = pid](const RecordedDeath& death) {
      return death.parent == parent && is_violent(death);
    });
    return HangCause{"respawn-loop",
                     "process " + std::to_string(pid) +
                         " starts workers again and again, and each of them dies: the last one, process " +
                         std::to_string(last->pid) + ", with " + to_string(last->end),
                     "look for what fails when a worker starts: its initializer, or an import"};
  }
  return std::nullopt;
}

// Somebody waits for the end of a process that was told to end, and takes no notice.
std::optional<HangCause> ignores_termination(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.wait.kind != WaitKind::kChild || thread.wait.wakers.empty()) continue;
    const World::Process* child = evidence.world->process(thread.wait.wakers.front().pid);
    if (child == nullptr || ((child->ignored_signals | child->caught_signals) & kTermBit) == 0) continue;
    if (!evidence.family->was_told_to_end(child->pid)) continue;
    const std::string pid = std::to_string(child->pid);
    const bool ignored = (child->ignored_signals & kTermBit) != 0;
    return HangCause{"ignores-termination",
                     "process " + pid + (ignored ? " ignores" : " catches") + " SIGTERM and goes on, while process " +
                         std::to_string(child->parent) + " waits for its end",
                     "kill -KILL " + pid + "; in Python: process.kill() where terminate() did not help"};
  }
  return std::nullopt;
}

// Of a process that may act by itself (a handler, a timer) even a wait within the tree is not for ever.
bool is_of_its_own(const JudgedThread& thread, const World::Process* process) {
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
    case WaitKind::kSignal:
      return !thread.wait.why_live.empty() && !is_of_its_own(thread, evidence.world->process(thread.sample->pid));
    default:
      return false;
  }
}

HangCause outside_wait(const JudgedThread& thread) {
  return {"external-wait",
          thread_text(thread) + " waits for something outside (" + to_string(thread.wait.kind) + ": " +
              thread.wait.why_live + ")",
          "look at what it talks to"};
}

// What mprun may not see is no sign that somebody waits for the outside.
bool is_for_want_of_sight(const Evidence& evidence, const JudgedThread& thread) {
  return !evidence.world->blind_spot().empty() && thread.wait.why_live == evidence.world->blind_spot();
}

std::optional<HangCause> external_wait(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (is_outside(evidence, thread) && !is_for_want_of_sight(evidence, thread)) return outside_wait(thread);
  }
  return std::nullopt;
}

// No cause, but why none is known.
std::optional<HangCause> not_seen(const Evidence& evidence) {
  HangCause unknown;
  for (const auto& [pid, process] : evidence.world->processes()) {
    if (!process.hidden) continue;
    const Hindrance hindrance = hindrance_of(evidence.world->proc(), pid, "mprun");
    unknown.explanation = "nothing can be proved, because mprun may not look at process " + std::to_string(pid) + " (" +
                          process.name + "): " + hindrance.why;
    unknown.fix = hindrance.cure;
    return unknown;
  }
  if (!evidence.world->blind_spot().empty()) {
    unknown.explanation = "nothing can be proved: " + evidence.world->blind_spot();
    return unknown;
  }
  for (const JudgedThread& thread : evidence.judgement->threads) {
    const World::Process* process = evidence.world->process(thread.sample->pid);
    if (!is_of_its_own(thread, process)) continue;
    unknown.explanation = "nothing can be proved of process " + std::to_string(process->pid) + ", which " +
                          process->acts_alone + "; all threads wait";
    return unknown;
  }
  return std::nullopt;
}

constexpr Rule kStallRules[] = {stopped, respawn_loop, ignores_termination, external_wait, not_seen};

}  // namespace

std::optional<HangCause> stopped_for_ever(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.wait.kind == WaitKind::kStopped && !thread.live) return stopped_thread(thread);
  }
  return std::nullopt;
}

HangCause find_cause_of_stall(const Evidence& evidence) {
  for (const Rule rule : kStallRules) {
    if (auto cause = rule(evidence)) return std::move(*cause);
  }
  HangCause unknown;
  unknown.explanation = "all threads wait";
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.wait.why_live.empty()) continue;
    unknown.explanation +=
        ", and of " + thread_text(thread) + " it cannot be said that it waits for ever: " + thread.wait.why_live;
    break;
  }
  return unknown;
}

HangCause find_cause_of_delay(const Evidence& evidence, pid_t tid) {
  HangCause unknown;
  unknown.explanation = "the thread is not there any more";
  unknown.fix = "look at the line it is at, or give it more time";
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.sample->tid != tid) continue;
    if (thread.wait.kind == WaitKind::kStopped) return stopped_thread(thread);
    if (is_outside(evidence, thread)) return outside_wait(thread);
    const bool runs = thread.wait.kind == WaitKind::kRunning;
    unknown.explanation =
        thread_text(thread) +
        (runs ? " still runs" : " waits (" + std::string(to_string(thread.wait.kind)) + "), which may end by itself");
  }
  return unknown;
}

}  // namespace mprun
