// uninterrupted(): a system call made again for as long as a signal interrupts it. For every call of mprun's that the
// kernel may end with EINTR and that has no loop of its own. mprun blocks the signals it takes, but being stopped and
// continued interrupts as well, and so do some file systems (NFS, FUSE).
#pragma once

#include <cerrno>

namespace mprun {

/// What `call` returns in the end; errno is that of the last time.
template <typename Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace mprun
