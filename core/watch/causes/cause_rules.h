// Helpers shared by the rules in *_causes.cc, and private to them. cause_table.h declares the rules.
#pragma once

#include <algorithm>

#include "watch/causes/causes.h"

namespace mprun {

inline constexpr std::string_view kPool = "/multiprocessing/pool.py";
inline constexpr std::string_view kManagers = "/multiprocessing/managers.py";

/// True if the thread and all others of its process are blocked for ever, or the thread by an orphaned lock.
[[nodiscard]] inline bool is_stuck(const Evidence& evidence, const JudgedThread& thread) {
  const Judgement& judgement = *evidence.judgement;
  const auto is_this = [&thread](const OrphanedWait& wait) { return wait.tid == thread.sample->tid; };
  if (std::any_of(judgement.orphaned.begin(), judgement.orphaned.end(), is_this)) return true;
  return judgement.stuck.count(thread.sample->pid) != 0 && thread.wait.kind != WaitKind::kEnded;
}

/// The first thread that matches; nullptr: there is none.
template <typename Matches>
const JudgedThread* find_thread(const Evidence& evidence, const Matches& matches) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (matches(thread)) return &thread;
  }
  return nullptr;
}

/// The first stuck thread that matches; nullptr: there is none.
template <typename Matches>
const JudgedThread* find_stuck(const Evidence& evidence, const Matches& matches) {
  return find_thread(evidence,
                     [&](const JudgedThread& thread) { return is_stuck(evidence, thread) && matches(thread); });
}

/// True if the thread is in an event loop of asyncio, uvloop or trio that has nothing to do. uvloop is compiled, and
/// calls libuv, which its wheels have built in.
[[nodiscard]] inline bool is_in_event_loop(const Evidence& evidence, const JudgedThread& thread) {
  const pid_t tid = thread.sample->tid;
  return thread.wait.kind == WaitKind::kPoll &&
         (evidence.is_in(tid, "/asyncio/base_events.py", "BaseEventLoop._run_once") ||
          evidence.is_in(tid, "/trio/_core/_io_epoll.py", "EpollIOManager.get_events") ||
          (evidence.python.count(tid) != 0 &&
           (evidence.is_in_native(tid, "uv_run (") || evidence.is_in_native(tid, "loop.cpython-"))));
}

/// True if the thread reads from a connection to a listener of its own process, which that has not inherited.
[[nodiscard]] bool asks_itself(const Evidence& evidence, const JudgedThread& thread);
/// True if the thread asks a manager of multiprocessing for a lock.
[[nodiscard]] inline bool asks_manager_for_lock(const Evidence& evidence, const JudgedThread& thread) {
  return evidence.is_in(thread.sample->tid, kManagers, "AcquirerProxy.acquire") ||
         evidence.is_in(thread.sample->tid, kManagers, "AcquirerProxy.__enter__");
}

/// True if a thread with these frames runs code of the user's. In a forked child, only what was called since counts.
[[nodiscard]] bool has_own_code(const std::vector<PythonFrame>& frames);
/// The chain from the user to the hang: the main thread of the outermost stuck process, what it waits for, and so on. A
/// wait for another process leads to its main thread, one for the own process to all its other threads.
[[nodiscard]] std::vector<const JudgedThread*> chain_of(const Evidence& evidence);
/// True if its parent may have had other threads at the fork: they may hold what this process waits for.
[[nodiscard]] bool may_have_lost_threads(const Evidence& evidence, pid_t pid);
/// True for a thread that waits in GNU's OpenMP: for a lock, at a barrier, or for its next region.
[[nodiscard]] bool waits_in_libgomp(const Evidence& evidence, const JudgedThread& thread);
/// The last child of a process that ended badly without having been asked to end; nullptr: none.
[[nodiscard]] const RecordedDeath* last_death_below(const Evidence& evidence, pid_t pid);
/// The last forked child of a stuck process that ended badly: stuck threads may wait for what it owed them. nullptr:
/// none.
[[nodiscard]] const RecordedDeath* find_dead_worker(const Evidence& evidence);
/// "process 10 ended with signal 9".
[[nodiscard]] std::string end_text(const RecordedDeath& death);
/// "process 10"; "thread 11 of process 10" for a thread that is not its main thread.
[[nodiscard]] std::string thread_text(const JudgedThread& thread);
/// A cycle of waits, each for the next and the last for the first; empty: there is none.
[[nodiscard]] std::vector<pid_t> find_cycle(const std::map<pid_t, pid_t>& waits_for);
/// "10 for 11 for 10".
[[nodiscard]] std::string cycle_text(const std::vector<pid_t>& cycle);

}  // namespace mprun
