#include "os/dead_mans_switch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace mprun {

// The kernel signals the owner of a socket in mode O_ASYNC when its peer is closed (fcntl(2): F_SETOWN, F_SETSIG). But
// a dying process closes all its descriptors. So `theirs` is sent to `ours` and never received there: closing `ours`
// first hangs up `theirs`, and only then drops it.
Result<DeadMansSwitch> make_dead_mans_switch() {
  auto pair = make_socket_pair();
  if (!pair) return pair.error();
  if (!send_descriptor(pair->theirs.get(), pair->theirs.get())) {
    return system_error("cannot tie a process to this one", errno);
  }
  return DeadMansSwitch{std::move(pair->ours), std::move(pair->theirs)};
}

bool die_with(int theirs) {
  return fcntl(theirs, F_SETSIG, SIGKILL) == 0 && fcntl(theirs, F_SETOWN, getpid()) == 0 &&
         fcntl(theirs, F_SETFL, O_ASYNC) == 0;
}

}  // namespace mprun
