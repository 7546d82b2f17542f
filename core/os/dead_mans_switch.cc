#include "os/dead_mans_switch.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>

namespace mprun {

// The kernel signals the owner of a socket in mode O_ASYNC when its peer is closed (fcntl(2): F_SETOWN, F_SETSIG). But
// a dying process closes all its descriptors. So `theirs` is sent to `ours` and never received there: closing `ours`
// first hangs up `theirs`, and only then drops it.
Result<Fd> kill_when_closed(pid_t pid) {
  auto pair = make_socket_pair();
  if (!pair) return pair.error();
  const int theirs = pair->theirs.get();
  if (!send_descriptor(theirs, theirs) || fcntl(theirs, F_SETSIG, SIGKILL) != 0 || fcntl(theirs, F_SETOWN, pid) != 0 ||
      fcntl(theirs, F_SETFL, O_ASYNC) != 0) {
    return system_error("cannot tie a process to this one", errno);
  }
  return std::move(pair->ours);
}

}  // namespace mprun
