// Ending and stopping everything a job started, grandchildren included. Called by the supervisor at
// the end of a job and by the guard when the supervisor died. Works because both are subreapers:
// whatever loses its parent becomes our child, so nothing below us can hide.
#pragma once

namespace mprun {

/// Sends `signal` to every descendant.
void signal_descendants(int signal);

/// Kills every descendant and reaps until none is left; returns how many were killed. Python's resource trackers
/// get a quarter of the time to end by themselves: as soon as all others have ended, they remove the shared memory that
/// was left. Gives up after `seconds`: a process in uninterruptible sleep cannot be ended by anyone.
int kill_descendants(double seconds);

}  // namespace mprun
