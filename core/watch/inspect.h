// One look at a tree of processes that mprun need not have started: what every thread of it does or waits for, and
// whether any of it can never move again. Called by `mprun inspect PID`, and for a job when it is asked by SIGUSR1.
// Takes at most about a second; stops nothing and writes nowhere.
#pragma once

#include "base/result.h"
#include "watch/explain.h"

namespace mprun {

struct Inspection {
  Hang hang;                       ///< all processes; nothing is stuck: its verdict is kLive
  bool moving = false;             ///< threads ran all the time: less can be proved
  std::vector<std::string> notes;  ///< why less is known than could be, for people
};

/// A process and all below it. What they share with the rest of the machine counts as the outside: pipes and sockets
/// that any process there has open, and those that the process may have got from a parent that cannot be read. Errors:
/// no such process, or it may not be looked into; the message says what to do.
[[nodiscard]] Result<Inspection> inspect_process(ProcSource* proc, pid_t pid);

/// What is below `root`, for which the caller knows the outside and the past.
[[nodiscard]] Inspection inspect_below(ProcSource* proc, pid_t root, const Watcher::AskBoundary& boundary,
                                       const ProcessHistory& history);

}  // namespace mprun
