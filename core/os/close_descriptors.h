// Closes descriptors in a child before exec, on every kernel. Used by spawn_process.
#pragma once

namespace mprun {

/// Closes every descriptor from `first` on. close_range(2) is there since Linux 5.9, and filters of system calls may
/// not know it: else what /proc/self/fd lists is closed, and without /proc every number up to the limit of open files.
/// Context: child between vfork and exec.
void close_from(int first);

}  // namespace mprun
