// Ending and stopping everything a job started, grandchildren included. Called by the supervisor at
// the end of a job and by the guard when the supervisor died. Works because both are subreapers:
// whatever loses its parent becomes our child, so nothing below us can hide.
#pragma once

namespace mprun {

/// Sends `signal` to every descendant.
void signal_descendants(int signal);

/// Kills every descendant and reaps until none is left; returns how many were killed. Helpers of multiprocessing and
/// torch that end by themselves as soon as all others have ended, and remove the shared memory that was left, may do
/// so: Python's trackers get a quarter of the time, its forkserver half a second; torch's, which takes two seconds,
/// four. Gives up after `seconds`, or one after those four: a process in uninterruptible sleep cannot be ended by
/// anyone.
int kill_descendants(double seconds);

}  // namespace mprun
