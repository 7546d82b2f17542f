// The judge: which threads can still move? A thread is live if it could go on by itself or from outside, or if anything
// that could wake it is live. The rest can never move again. A pure function of a sample in which all threads stood
// still, and of the snapshot at that instant.
#pragma once

#include "watch/judge/wait.h"

namespace mprun {

struct JudgedThread {
  const ThreadSample* sample = nullptr;
  Wait wait;
  bool live = true;
};

/// A thread that can never go on, although others of its process run (orphaned_lock.h).
struct OrphanedWait {
  pid_t pid = 0, tid = 0;
  std::uint64_t address = 0;  ///< of the mutex, or of the word that pthread_join() waits for; 0: it wants the GIL
  pid_t owner = 0;            ///< the thread that has the lock, or had it when it ended; or whose end is awaited
  bool owner_ended = false;
  std::uint64_t switches = 0;  ///< how often `tid` has left a CPU so far, or the GIL that it wants has changed hands
  std::size_t held_up = 0;     ///< how many processes in total can never return
  bool operator==(const OrphanedWait&) const = default;
};

struct Judgement {
  std::vector<JudgedThread> threads;        ///< as in the sample
  std::set<pid_t> stuck, live;              ///< processes: all of their threads are blocked for ever, or not all are
  std::vector<std::uint64_t> gil_switches;  ///< of the GILs whose waiters count as waiting for the holder
  std::vector<OrphanedWait> orphaned;       ///< of live processes; judge() does not look for them
  std::set<pid_t> cannot_return;            ///< processes (main_threads.h); judge() does not look for them
  [[nodiscard]] bool is_deadlock() const { return live.empty() && !stuck.empty(); }
  /// True if two successive judgements found the same hang.
  [[nodiscard]] bool agrees_with(const Judgement& other) const {
    return stuck == other.stuck && gil_switches == other.gil_switches;
  }
};

/// `sample` must outlive the judgement.
[[nodiscard]] Judgement judge(const Sample& sample, TreeSnapshot* snapshot);

}  // namespace mprun
