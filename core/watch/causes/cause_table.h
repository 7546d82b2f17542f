// Every cause that the watch names, and the rules that find it. cause_table.cc has the order of the rules, and the
// cures. The rules are in *_causes.cc; they write the explanations. Used by the engine (causes.cc), the reports and
// `mprun explain`.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

namespace mprun {

struct Evidence;

enum class CauseKind { kProof, kStall };

/// A cause that reports name.
struct CauseId {
  const char* name;  ///< its page is man/causes/NAME.md
  CauseKind kind;    ///< kStall: it is never proved
};

namespace causes {
inline constexpr CauseId kBarrierShort{"barrier-short", CauseKind::kProof};
inline constexpr CauseId kEdgeMissed{"edge-missed", CauseKind::kProof};
inline constexpr CauseId kExitHandlerWaits{"exit-handler-waits", CauseKind::kProof};
inline constexpr CauseId kFifoNotOpened{"fifo-not-opened", CauseKind::kProof};
inline constexpr CauseId kGilHeld{"gil-held", CauseKind::kProof};
inline constexpr CauseId kInputNeverClosed{"input-never-closed", CauseKind::kProof};
inline constexpr CauseId kLockCycle{"lock-cycle", CauseKind::kProof};
inline constexpr CauseId kLockHeldAtFork{"lock-held-at-fork", CauseKind::kProof};
inline constexpr CauseId kLoopNotWoken{"loop-not-woken", CauseKind::kProof};
inline constexpr CauseId kMutexOwnerEnded{"mutex-owner-ended", CauseKind::kProof};
inline constexpr CauseId kNeverNotified{"never-notified", CauseKind::kProof};
inline constexpr CauseId kNoWaker{"no-waker", CauseKind::kProof};
inline constexpr CauseId kOpenmpAfterFork{"openmp-after-fork", CauseKind::kProof};
inline constexpr CauseId kPipeCycle{"pipe-cycle", CauseKind::kProof};
inline constexpr CauseId kPipeKeptByGrandchild{"pipe-kept-by-grandchild", CauseKind::kProof};
inline constexpr CauseId kPipeNeverClosed{"pipe-never-closed", CauseKind::kProof};
inline constexpr CauseId kPoolHelperLost{"pool-helper-lost", CauseKind::kProof};
inline constexpr CauseId kQueueNotDrained{"queue-not-drained", CauseKind::kProof};
inline constexpr CauseId kServerAsksItself{"server-asks-itself", CauseKind::kProof};
inline constexpr CauseId kTaskWaitsInOwnPool{"task-waits-in-own-pool", CauseKind::kProof};
inline constexpr CauseId kThreadLostAtFork{"thread-lost-at-fork", CauseKind::kProof};
inline constexpr CauseId kWorkerDied{"worker-died", CauseKind::kProof};

inline constexpr CauseId kChildSignalMissed{"child-signal-missed", CauseKind::kStall};
inline constexpr CauseId kClosedWhileWaiting{"closed-while-waiting", CauseKind::kStall};
inline constexpr CauseId kCollectiveMismatch{"collective-mismatch", CauseKind::kStall};
inline constexpr CauseId kExternalWait{"external-wait", CauseKind::kStall};
inline constexpr CauseId kIgnoresTermination{"ignores-termination", CauseKind::kStall};
inline constexpr CauseId kMessageNeverSent{"message-never-sent", CauseKind::kStall};
inline constexpr CauseId kPollsInVain{"polls-in-vain", CauseKind::kStall};
inline constexpr CauseId kRankMissing{"rank-missing", CauseKind::kStall};
inline constexpr CauseId kRespawnLoop{"respawn-loop", CauseKind::kStall};
inline constexpr CauseId kStopped{"stopped", CauseKind::kStall};
inline constexpr CauseId kStoreKeyMissing{"store-key-missing", CauseKind::kStall};
inline constexpr CauseId kUnknown{"unknown", CauseKind::kStall};  ///< no cause; it has no page
}  // namespace causes

/// What a rule has found.
struct Explanation {
  std::string text;         ///< one sentence, which names processes and objects
  std::string cure = {};    ///< empty: the table's
  bool looks_idle = false;  ///< see HangCause
};

/// Returns what is certain, or nothing.
using Rule = std::optional<Explanation>(const Evidence&);

// fork_causes.cc
Rule openmp_after_fork, mutex_held_at_fork, thread_lost_at_fork, lock_held_at_fork, lock_held_by_forker,
    thread_left_behind_at_fork, lock_left_behind_at_fork;
// lock_causes.cc
Rule mutex_locked_twice, mutex_cycle, join_with_mutex, own_file_lock, file_lock_cycle, polled_file_lock, gil_held,
    python_lock_inherited, python_lock_taken_twice, python_lock_cycle, import_cycle, mutex_owner_ended,
    own_database_lock;
// orphan_causes.cc: for threads that are stuck in a process that runs (Judgement::orphaned)
Rule orphaned_mutex_cycle, orphaned_mutex_held_at_fork, orphaned_mutex_owner_ended, orphaned_mutex;
// pipe_causes.cc
Rule fifo_not_opened, queue_not_drained, output_not_read, pipe_never_closed, pipe_cycle, input_never_closed,
    pipe_kept_by_grandchild, queue_full, edge_missed, edge_missed_for_long, ruby_pipe_never_closed, server_asks_itself,
    own_output_not_read, threads_read_from_each_other;
// collective_causes.cc
Rule rank_missing, collective_mismatch, store_key_missing, message_never_sent, rpc_shutdown_left_out, rpc_in_rpc;
// pool_causes.cc
Rule pool_worker_died, executor_worker_died, pool_helper_lost, pool_task_gone, pool_lost_task, pool_lost_helper,
    pool_callback_waits, pool_task_waits, task_waits_in_own_pool;
// shared_lock_causes.cc
Rule manager_lock_owner_died, semaphore_user_died, lock_owner_died, manager_lock_cycle, shared_lock_cycle;
// wait_causes.cc
Rule child_signal_missed, barrier_short, connecting_child_died, exit_handler_waits, loop_not_woken, never_notified,
    no_waker;
// thread_causes.cc
Rule closed_while_waiting, threads_join_each_other, reader_is_joined, loop_waits_for_future, looks_for_own_in_vain;
// native_causes.cc
Rule native_lock_cycle, openmp_lock_cycle, native_barrier_short, openmp_barrier_short, native_exit_waits,
    native_never_notified;
// java_causes.cc
Rule java_class_init, java_threads_left, java_never_notified;
// stall_causes.cc
Rule stopped_for_ever, grpc_left_behind, process_stopped, respawn_loop, ignores_termination, external_wait,
    polls_in_vain, not_seen, not_proved, late_while_stopped, late_for_outside, not_in_time;

/// A line of the table.
struct CauseRule {
  CauseId id;
  Rule* find;
  const char* cure;  ///< one command or change; empty: the rule gives it, or none is known
};

/// What a cause is sought for. Each set has its own rules, the last of which always finds a cause.
enum class RuleSet {
  kStuck,         ///< what is proved, or would be but for assumptions
  kOrphanedLock,  ///< threads that are stuck in a process that runs
  kStall,         ///< a tree that has not moved for long
  kLate,          ///< a thread that is late
};

/// In the order in which they are tried.
[[nodiscard]] std::span<const CauseRule> rules_of(RuleSet set);
/// Every cause with a page, by its name.
[[nodiscard]] std::map<std::string, CauseKind> all_causes();

}  // namespace mprun
