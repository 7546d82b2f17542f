// One look at a tree of processes, which mprun need not have started: what each thread does or waits for, and whether
// any of it can never move again. Called by `mprun inspect PID`, and for a job when it gets SIGUSR1. Takes about a
// second at most; stops nothing and writes nowhere.
#pragma once

#include "base/result.h"
#include "watch/explain.h"

namespace mprun {

struct Inspection {
  Hang hang;                       ///< all processes; its verdict is kLive if nothing is stuck
  bool moving = false;             ///< threads ran all the time: less can be proved
  std::vector<std::string> notes;  ///< human-readable: why less is known than could be
};

/// Inspects a process and all below it. What they share with other processes of the machine counts as the outside:
/// pipes and sockets that any of those has open, and those that the process may have got from a parent that cannot be
/// read. Errors: there is no such process, or it may not be inspected; the message says what to do.
[[nodiscard]] Result<Inspection> inspect_process(ProcSource* proc, pid_t pid);

/// Inspects what is below `root`. The caller supplies the boundary and the history.
[[nodiscard]] Inspection inspect_below(ProcSource* proc, pid_t root, const Watcher::AskBoundary& boundary,
                                       const ProcessHistory& history);

}  // namespace mprun
