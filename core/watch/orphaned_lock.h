// Orphaned locks: threads that can never go on because of a mutex, in a process whose other threads run. The judge
// calls them live, since any thread of a process may wake one that waits for a futex; but a mutex is unlocked by its
// owner, and that one has ended, or is stuck itself. Used by orphaned_lock_watch.h and by the watcher. Pure.
//
// What is taken as a mutex is one of glibc, of one process, of an ordinary kind, waited for in the code of glibc that
// is for that. A thread that waits for a mutex of its own is passed over: some use one to wait for another thread,
// which unlocks it; POSIX leaves undefined what comes of that, and with glibc it works.
#pragma once

#include "watch/judge.h"

namespace mprun {

/// Of all processes that are not stuck whole, in the order of the sample.
[[nodiscard]] std::vector<OrphanedWait> find_orphaned_waits(const Judgement& judgement, TreeSnapshot* snapshot);

/// From now on `judgement` says of its orphaned threads that they are blocked for ever, and of whom they wait.
void mark_orphaned(Judgement* judgement);

}  // namespace mprun
