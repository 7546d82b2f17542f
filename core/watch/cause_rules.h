// What the rules of causes.cc, fork_causes.cc, wait_causes.cc and collective_causes.cc share. Private to them.
#pragma once

#include "watch/causes.h"

namespace mprun {

/// The thread is blocked for ever, as all of its process are.
[[nodiscard]] inline bool is_stuck(const Evidence& evidence, const JudgedThread& thread) {
  return evidence.judgement->stuck.count(thread.sample->pid) != 0 && thread.wait.kind != WaitKind::kEnded;
}

/// The first that is stuck and matches; nullptr: there is none.
template <typename Matches>
const JudgedThread* find_stuck(const Evidence& evidence, const Matches& matches) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (is_stuck(evidence, thread) && matches(thread)) return &thread;
  }
  return nullptr;
}

/// It is in an event loop of asyncio that has nothing to do.
[[nodiscard]] inline bool is_in_event_loop(const Evidence& evidence, const JudgedThread& thread) {
  return thread.wait.kind == WaitKind::kPoll &&
         evidence.is_in(thread.sample->tid, "/asyncio/base_events.py", "BaseEventLoop._run_once");
}
/// It waits until what it has written is read; or until there is something to read. wait_causes.cc.
[[nodiscard]] bool waits_to_write(const Evidence& evidence, const JudgedThread& thread);
[[nodiscard]] bool waits_to_read(const Evidence& evidence, const JudgedThread& thread);
/// `pid` has open what the thread reads or writes: of a FIFO, those who could let it go on need not. wait_causes.cc.
[[nodiscard]] bool has_open_too(const Evidence& evidence, const JudgedThread& thread, pid_t pid);

// fork_causes.cc
[[nodiscard]] std::optional<HangCause> openmp_after_fork(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> mutex_held_at_fork(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> thread_lost_at_fork(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> left_behind_at_fork(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> lock_held_at_fork(const Evidence& evidence);

// collective_causes.cc
[[nodiscard]] std::optional<HangCause> collective_mismatch(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> message_never_sent(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> store_key_missing(const Evidence& evidence);

/// Where it is assumed that nobody continues what was stopped. stall_causes.cc.
[[nodiscard]] std::optional<HangCause> stopped_for_ever(const Evidence& evidence);

// wait_causes.cc. Each says what it is sure of, or nothing.
[[nodiscard]] std::optional<HangCause> fifo_not_opened(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> child_signal_missed(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> pipe_cycle(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> input_never_closed(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> pipe_kept_by_grandchild(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> pool_helper_lost(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> task_waits_in_own_pool(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> exit_handler_waits(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> shared_lock_cycle(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> mutex_owner_ended(const Evidence& evidence);
[[nodiscard]] std::optional<HangCause> never_notified(const Evidence& evidence);
[[nodiscard]] HangCause no_waker(const Evidence& evidence);

}  // namespace mprun
