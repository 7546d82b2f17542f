// Ending and stopping everything a job started, grandchildren included. Called by the supervisor at
// the end of a job and by the guard when the supervisor died. Works because both are subreapers:
// every process that loses its parent becomes our child, so none below us can hide.
#pragma once

#include "procfs/process_ref.h"

namespace mprun {

/// Sends `signal` to every descendant.
void signal_descendants(int signal);

/// Signals a process group, or the process where it does not lead its group yet. SIGKILL spares the trackers of Python
/// and torch: they end by themselves once the others have, and remove the named shared memory and semaphores that those
/// have left.
void signal_group(const ProcessRef& leader, int signal);

/// Kills what a process that has ended, and is not reaped yet, has left behind in its group; trackers are spared.
void kill_leftovers(const ProcessRef& leader);

/// Kills a process that mprun has not started, and all below it: stops them first, so that none can start another one
/// unseen. False: one of them may not be signalled.
bool kill_tree(const ProcessRef& root);

/// Kills every descendant and reaps until none is left; returns how many were killed. Helpers of multiprocessing and
/// torch that end by themselves after the others, and remove the shared memory that was left, get time to do so
/// (patience_with() in teardown.cc). Gives up after `seconds`, or one second after those helpers had to end: a process
/// in uninterruptible sleep cannot be ended.
int kill_descendants(double seconds);

}  // namespace mprun
