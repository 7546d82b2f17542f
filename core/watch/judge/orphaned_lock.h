// Orphaned locks: threads that can never go on because of a lock, in a process whose other threads run. The judge calls
// such a process live. But a lock is released by its owner, and here the owner has ended or is stuck itself. Used by
// orphaned_lock_watch.h and by the watcher. Pure.
//
// The lock is the GIL of a Python, or a glibc mutex: private to one process, of an ordinary kind, and waited for in
// glibc's own code for mutexes. A thread that waits for its own mutex is skipped: some programs wait in this way for
// another thread, which unlocks the mutex. POSIX leaves this undefined; with glibc it works.
#pragma once

#include "watch/judge/judge.h"

namespace mprun {

/// In all processes that are not stuck as a whole, in the order of the sample.
[[nodiscard]] std::vector<OrphanedWait> find_orphaned_waits(const Judgement& judgement, TreeSnapshot* snapshot);

/// Marks the orphaned threads in `judgement` as blocked for ever, and sets the thread that each waits for.
void mark_orphaned(Judgement* judgement);

}  // namespace mprun
