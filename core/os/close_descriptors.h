// Closes descriptors in a child before exec, on every kernel. Used by spawn_process.
#pragma once

namespace mprun {

/// Closes every descriptor from `first` on. Where close_range(2) is missing (before Linux 5.9, or refused by a system
/// call filter), it closes what /proc/self/fd lists, and without /proc every number up to the limit of open files.
/// Context: child between vfork and exec.
void close_from(int first);

}  // namespace mprun
