// Which processes of a tree can never return, because their main threads cannot. Decides whether a proof about a part
// of a tree also covers the processes that wait for that part. Used by the watcher. Pure.
#pragma once

#include "watch/judge/judge.h"

namespace mprun {

/// The processes that are stuck, and those whose main thread is blocked for ever or waits, without a time limit, only
/// for the end of such processes. Their other threads may run and could still end what is waited for, so the caller
/// should give them time. A process with a threading.Timer, which is set for that, is not included.
[[nodiscard]] std::set<pid_t> processes_that_cannot_return(const Judgement& judgement, TreeSnapshot* snapshot);

/// Marks the main threads of `cannot_return` in `judgement` as blocked for ever.
void mark_main_threads(Judgement* judgement);

}  // namespace mprun
