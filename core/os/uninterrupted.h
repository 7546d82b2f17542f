// uninterrupted(): repeats a system call while a signal interrupts it. Used for every call of mprun that may fail with
// EINTR and has no loop of its own. mprun blocks the signals it handles, but being stopped and continued interrupts
// calls as well, and so do some file systems (NFS, FUSE).
#pragma once

#include <cerrno>

namespace mprun {

/// The result of the last call, with its errno.
template <typename Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace mprun
