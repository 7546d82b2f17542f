// Which processes of a tree can never return, because their main threads cannot: what decides whether a proof about a
// part of a tree is one about those who wait for that part. Used by the watcher. Pure.
#pragma once

#include "watch/judge.h"

namespace mprun {

/// The processes that are stuck, and those whose main thread is blocked for ever or waits, without a limit of time, for
/// the end of such processes alone. Their other threads may run: they could still end what is waited for, so that
/// people should be patient with them. One with a threading.Timer, which is set for that, is not among them.
[[nodiscard]] std::set<pid_t> processes_that_cannot_return(const Judgement& judgement, TreeSnapshot* snapshot);

/// From now on `judgement` says of the main threads of `cannot_return` that they are blocked for ever.
void mark_main_threads(Judgement* judgement);

}  // namespace mprun
