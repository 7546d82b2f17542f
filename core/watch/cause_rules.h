// What the rules of causes.cc, wait_causes.cc and collective_causes.cc share. Private to them.
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

// collective_causes.cc
[[nodiscard]] std::optional<HangCause> collective_mismatch(const Evidence& evidence);

// wait_causes.cc. Each says what it is sure of, or nothing.
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
