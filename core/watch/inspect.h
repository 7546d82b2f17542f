// One look at a tree of processes, which mprun need not have started: what each thread does or waits for, and whether
// any of it can never move again. Called by `mprun inspect PID`, and for a job when it gets SIGUSR1. A look takes about
// a second at most; it stops nothing and writes nowhere.
#pragma once

#include "base/result.h"
#include "watch/explain.h"

namespace mprun {

/// Counts as a stall: what has stood still for so long, or sooner what would be a deadlock but for a few assumptions.
/// As the watch does by default (WatchPolicy::stall_seconds).
constexpr Nanos kInspectedStall = 300 * kNanosPerSecond;

struct Inspection {
  Hang hang;                       ///< all processes; its verdict is kLive if nothing is stuck
  bool moving = false;             ///< threads ran all the time: less can be proved
  bool suspects_lock = false;      ///< a mutex seems orphaned, which takes longer to prove than one look
  bool suspects_stall = false;     ///< with a few assumptions nothing can move; whether it stays so takes longer to see
  std::vector<std::string> notes;  ///< human-readable: why less is known than could be
};

/// Another look could say no more: a hang is proved, or each thread was seen at rest and can still move.
[[nodiscard]] bool is_sure(const Inspection& inspection);

/// Why mprun may not look into a process as `mprun COMMAND PID`; nullopt: it may. There is none, it has ended, or the
/// number is that of a thread (kUsage); it may not be looked into (kAccess).
[[nodiscard]] std::optional<Error> why_not_seen(ProcSource* proc, pid_t pid, const std::string& command);

/// Inspects a process and all below it. What they share with other processes of the machine counts as the outside:
/// pipes and sockets that any of those has open, and those that the process may have got from a parent that cannot be
/// read. Errors: there is no such process (kUsage), or it may not be inspected (kAccess); the message says what to do.
[[nodiscard]] Result<Inspection> inspect_process(ProcSource* proc, pid_t pid);

/// Looks again until a hang is proved, two looks in a row are sure that there is none, or `patience` is over since the
/// first look; in between a Watcher looks as it does for a job, so that it also finds orphaned locks and stalls. Errors
/// as above, also if the process ends meanwhile.
[[nodiscard]] Result<Inspection> inspect_patiently(ProcSource* proc, pid_t pid, Nanos patience);

/// Inspects what is below `root`. The caller supplies the boundary and the history.
[[nodiscard]] Inspection inspect_below(ProcSource* proc, pid_t root, const WatchedTree::AskBoundary& boundary,
                                       const ProcessHistory& history);

}  // namespace mprun
