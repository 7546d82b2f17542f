#include "watch/causes/cause_table.h"

namespace mprun {
namespace causes {
namespace {

constexpr char kSameOrder[] = "take the locks in the same order everywhere";
constexpr char kNeverJoinHolding[] = "wait for the end of no thread while you hold a lock that it needs";
constexpr char kReleaseGil[] = "release the GIL around the call (Py_BEGIN_ALLOW_THREADS; ctypes.CDLL instead of PyDLL)";
constexpr char kUnlockAlways[] =
    "unlock the mutex on every way out of the thread that locks it, or make it a robust one";
constexpr char kNotifyAlways[] = "make sure that set, notify or put is called on every path, also after an error";
constexpr char kForkFirst[] = "fork before other threads start, or start the process by spawn or exec";
constexpr char kCloseOwnEnd[] = "close the writing end in the process that reads";
constexpr char kWriteFirst[] = "let one side write first; flush what it has written, and close what it does not use";
constexpr char kReadAll[] =
    "with EPOLLET, make the descriptor non-blocking, and read after each event until EAGAIN; or leave EPOLLET out; "
    "with EPOLLONESHOT, arm it again after each event (EPOLL_CTL_MOD)";
constexpr char kUseExecutor[] =
    "find out why it died; concurrent.futures.ProcessPoolExecutor fails instead of waiting, and a job of mprun tries "
    "the task again";
constexpr char kWaitOutside[] =
    "wait for tasks outside of the pool that runs them, or give it more threads than tasks that wait";
constexpr char kUnpickle[] =
    "return what can be unpickled (an exception needs an __init__ that its args fit), and let no callback raise";

// In this order: what is certain before what may follow from it.
constexpr CauseRule kStuckRules[] = {
    {kStopped, stopped_for_ever, ""},
    {kOpenmpAfterFork, openmp_after_fork,
     "leave mprun's libgomp adapter on, or start workers by \"spawn\" instead of fork: "
     "multiprocessing.set_start_method(\"spawn\")"},
    {kLockCycle, mutex_locked_twice, "make the mutex recursive, or do not lock it twice"},
    {kLockCycle, mutex_cycle, kSameOrder},
    {kLockCycle, join_with_mutex, kNeverJoinHolding},
    {kLockCycle, own_file_lock, "open and lock the file once, or let go of the first lock before"},
    {kLockCycle, file_lock_cycle, kSameOrder},
    {kLockCycle, polled_file_lock,
     "release the lock before you wait for a thread or process that needs it; one FileLock object may be locked twice"},
    {kLockHeldAtFork, mutex_held_at_fork, kForkFirst},
    {kGilHeld, gil_held, kReleaseGil},
    {kPoolHelperLost, pool_helper_lost, kUnpickle},
    {kWorkerDied, pool_worker_died, kUseExecutor},
    {kWorkerDied, executor_worker_died,
     "find out why it died; give tasks little data, or Python 3.12, which closes that pipe"},
    {kWorkerDied, manager_lock_owner_died,
     "find out why it died; a manager keeps a lock that its holder has not released"},
    {kWorkerDied, semaphore_user_died,
     "find out why it died; with SEM_UNDO the kernel takes back what a dead process has done"},
    {kWorkerDied, connecting_child_died,
     "find out why it died; accept with a limit of time, or wait for the end of the child at the same time"},
    {kWorkerDied, lock_owner_died, "find out why it died; do not kill a process that may hold a lock or use a queue"},
    {kLockHeldAtFork, lock_held_by_forker,
     "use an executor or a pool only in the process that made it, and make another in the worker; or start workers by "
     "\"spawn\""},
    {kThreadLostAtFork, thread_lost_at_fork,
     "make executors, event loops and threads in the child, or start it by \"spawn\": "
     "multiprocessing.set_start_method(\"spawn\")"},
    {kLockHeldAtFork, lock_held_at_fork,
     "fork before other threads start, or start the process by \"spawn\": "
     "multiprocessing.set_start_method(\"spawn\")"},
    {kThreadLostAtFork, thread_left_behind_at_fork, "start threads in the child, or start it by exec (posix_spawn)"},
    {kLockHeldAtFork, lock_left_behind_at_fork,
     "fork before other threads start, or start the process by exec (posix_spawn)"},
    {kWorkerDied, pool_task_gone, kUseExecutor},
    {kRankMissing, rank_missing,
     "start as many processes as world_size says, and see why those that are missing ended or never came: all need the "
     "same MASTER_ADDR, MASTER_PORT and world_size"},
    {kCollectiveMismatch, collective_mismatch,
     "let all ranks call the same collectives in the same order: none in a branch that only some take, as many batches "
     "for each (torch.distributed.algorithms.join helps with uneven ones)"},
    {kStoreKeyMissing, store_key_missing,
     "set each key that a rank waits for, under the same name and prefix, before you wait for others"},
    {kMessageNeverSent, message_never_sent,
     "match each receive with a send of the same tag and communicator, and let all ranks call the same collectives; "
     "two that send each other much use Sendrecv, or Isend"},
    {kFifoNotOpened, fifo_not_opened,
     "open FIFOs in the same order on both sides, and see that who is to open the other end has not ended"},
    {kClosedWhileWaiting, closed_while_waiting,
     "before you close a socket, call shutdown(SHUT_RDWR), which ends accept() and recv(); close the other end of a "
     "pipe, or let the thread poll a second pipe by which you wake it"},
    {kQueueNotDrained, queue_not_drained, "get all results before you join: queue.get() first, then process.join()"},
    {kQueueNotDrained, output_not_read,
     "read all of the output before you wait for the process that writes it, or close your end of the pipe"},
    {kChildSignalMissed, child_signal_missed,
     "block SIGCHLD before you look whether a child has ended, and wait with sigsuspend, or use waitpid"},
    {kPipeNeverClosed, pipe_never_closed, kCloseOwnEnd},
    {kPipeNeverClosed, ruby_pipe_never_closed, kCloseOwnEnd},
    {kBarrierShort, barrier_short, "give the barrier as many parties as will wait at it, or wait(timeout=...)"},
    {kLockHeldAtFork, python_lock_inherited,
     "hold no lock while you start a process by fork, or start it by \"spawn\": "
     "multiprocessing.set_start_method(\"spawn\")"},
    {kLockCycle, python_lock_taken_twice,
     "do not lock it twice (a threading.RLock may be), and free it in any case: `with lock:`"},
    {kLockCycle, python_lock_cycle,
     "take locks in the same order everywhere, and wait for no thread while you hold a lock that it needs"},
    {kLockCycle, import_cycle,
     "start no thread that is waited for while a module is imported: do it in a function that is called later"},
    {kMutexOwnerEnded, mutex_owner_ended, kUnlockAlways},
    {kLockCycle, native_lock_cycle,
     "lock nothing twice in a thread, not even to read: a writer that waits lets no more readers in, and waits for all "
     "of them to finish"},
    {kLockCycle, openmp_lock_cycle,
     "unlock in the thread that locks, on every way out, and wait for no other thread inside a critical section"},
    {kTaskWaitsInOwnPool, task_waits_in_own_pool, kWaitOutside},
    {kPipeKeptByGrandchild, pipe_kept_by_grandchild,
     "give what runs in the background its own output, as in `command >/dev/null 2>&1 &`, or end it"},
    {kInputNeverClosed, input_never_closed,
     "write what the child is to read and close the pipe, before you wait for the child"},
    {kServerAsksItself, server_asks_itself,
     "let the server handle requests in several threads (http.server.ThreadingHTTPServer), or call its function "
     "instead of asking it"},
    {kLockCycle, shared_lock_cycle,
     "take locks in the same order everywhere, free them in any case (`with lock:`), and wait for no process while you "
     "hold a lock that it needs"},
    {kLockCycle, manager_lock_cycle,
     "free locks in any case (`with lock:`), and wait for no process while you hold a lock that it needs"},
    {kTaskWaitsInOwnPool, loop_waits_for_future,
     "in a coroutine, await the future (asyncio.wrap_future(future)); run_coroutine_threadsafe(...).result() is for "
     "other threads than that of the loop"},
    {kLoopNotWoken, loop_not_woken,
     "from another thread, set futures and events of asyncio by loop.call_soon_threadsafe(event.set), and start "
     "coroutines by asyncio.run_coroutine_threadsafe()"},
    {kLockCycle, threads_join_each_other,
     "wait for the ends of threads in one place only: the thread that starts them"},
    {kInputNeverClosed, reader_is_joined, "close the other end, or shut it down, before you wait for the thread"},
    {kLockCycle, java_class_init,
     "let no static initialiser wait for another thread (a parallel stream, a pool), nor two classes need each other "
     "to be initialised"},
    {kExitHandlerWaits, exit_handler_waits, "end it before, or make it a daemon: daemon=True"},
    {kExitHandlerWaits, native_exit_waits,
     "end the threads before, and wait for none in an exit handler or the destructor of a static object"},
    {kExitHandlerWaits, java_threads_left, "shut the executor down (shutdown(), close()), or make its threads daemons"},
    {kNeverNotified, java_never_notified, kNotifyAlways},
    {kNeverNotified, pool_task_waits, "look at what the task waits for in that line, or give its wait a limit of time"},
    {kNeverNotified, never_notified, kNotifyAlways},
    {kQueueNotDrained, queue_full, "take items out while others are put, or give the queue no maxsize"},
    {kQueueNotDrained, own_output_not_read,
     "let another thread read while this one writes, or write no more than the pipe holds (64 KiB as a rule)"},
    {kEdgeMissed, edge_missed, kReadAll},
    {kPipeCycle, pipe_cycle, kWriteFirst},
    {kPipeCycle, threads_read_from_each_other, kWriteFirst},
    {kBarrierShort, native_barrier_short, "give the barrier as many parties as will wait at it"},
    {kBarrierShort, openmp_barrier_short,
     "let all threads of a team come to the same barriers: none in a branch that only some take"},
    {kNeverNotified, native_never_notified, kNotifyAlways},
    {kPollsInVain, looks_for_own_in_vain,
     "give the loop a limit of time, or wait by future.result(), thread.join() or queue.get(); and see that every path "
     "sets the future, puts the item or counts, also after an error"},
    {kNoWaker, no_waker, "change one of them so that it does not wait, or waits with a limit of time"},
};

constexpr CauseRule kOrphanedLockRules[] = {
    {kGilHeld, gil_held, kReleaseGil},
    {kLockCycle, join_with_mutex, kNeverJoinHolding},
    {kLockCycle, orphaned_mutex_cycle, kSameOrder},
    {kLockHeldAtFork, orphaned_mutex_held_at_fork, kForkFirst},
    {kMutexOwnerEnded, orphaned_mutex_owner_ended, kUnlockAlways},
    {kNoWaker, orphaned_mutex, ""},
};

constexpr CauseRule kStallRules[] = {
    {kTaskWaitsInOwnPool, pool_callback_waits, kWaitOutside},
    {kPoolHelperLost, pool_lost_helper, kUnpickle},
    {kWorkerDied, pool_lost_task, kUseExecutor},
    {kThreadLostAtFork, grpc_left_behind,
     "make channels and servers of gRPC only after the fork, in the child, or start it by \"spawn\": "
     "multiprocessing.set_start_method(\"spawn\")"},
    {kStopped, process_stopped, ""},
    {kRespawnLoop, respawn_loop, "look for what fails when a worker starts: its initializer, or an import"},
    {kIgnoresTermination, ignores_termination, ""},
    {kTaskWaitsInOwnPool, rpc_in_rpc,
     "wait for no remote function in another: return a future from it (rpc.functions.async_execution), or give "
     "num_worker_threads more threads than calls that wait"},
    {kCollectiveMismatch, rpc_shutdown_left_out,
     "call rpc.shutdown() in all workers: it waits for all, or use rpc.shutdown(graceful=False)"},
    {kEdgeMissed, edge_missed_for_long, kReadAll},
    {kExternalWait, external_wait, "look at what it talks to"},
    {kLockCycle, own_database_lock,
     "commit or roll back in the first connection before another one writes, or use one connection for both"},
    {kPollsInVain, polls_in_vain,
     "look at what would end the loop: who was to bring it about may have ended, or changes memory that it does not "
     "share; give the loop a limit of time, or wait by join(), an Event or a Queue"},
    {kUnknown, not_seen, ""},
    {kUnknown, not_proved, ""},
};

constexpr CauseRule kLateRules[] = {
    {kStopped, late_while_stopped, ""},
    {kExternalWait, late_for_outside, "look at what it talks to"},
    {kUnknown, not_in_time, "look at the line it is at, or give it more time"},
};

}  // namespace
}  // namespace causes

std::span<const CauseRule> rules_of(RuleSet set) {
  switch (set) {
    case RuleSet::kStuck:
      return causes::kStuckRules;
    case RuleSet::kOrphanedLock:
      return causes::kOrphanedLockRules;
    case RuleSet::kStall:
      return causes::kStallRules;
    case RuleSet::kLate:
      return causes::kLateRules;
  }
  return {};
}

std::map<std::string, CauseKind> all_causes() {
  std::map<std::string, CauseKind> all;
  for (const RuleSet set : {RuleSet::kStuck, RuleSet::kOrphanedLock, RuleSet::kStall, RuleSet::kLate}) {
    for (const CauseRule& rule : rules_of(set)) all.emplace(rule.id.name, rule.id.kind);
  }
  all.erase(causes::kUnknown.name);
  return all;
}

}  // namespace mprun
