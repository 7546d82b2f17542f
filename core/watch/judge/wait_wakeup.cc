// Pipes and sockets of a process in Python to which the handler of a signal may write (signal.set_wakeup_fd()). That is
// CPython's own, even if no function in Python runs for the signal, and the program may idle until then. Which
// descriptor it has been given is not seen, but it must not block.
#include <fcntl.h>

#include <algorithm>

#include "watch/judge/wait.h"
#include "watch/sample/signal_handlers.h"

namespace mprun {

bool may_be_wakeup(pid_t pid, const Descriptor& descriptor, TreeSnapshot* snapshot) {
  const UnixSocket* const socket =
      descriptor.kind == Descriptor::Kind::kSocket ? snapshot->unix_socket(descriptor.inode) : nullptr;
  if (socket == nullptr && descriptor.kind != Descriptor::Kind::kPipe) return false;
  const std::uint64_t far_end = socket != nullptr ? socket->peer : descriptor.inode;
  const auto& own = snapshot->process(pid)->descriptors;
  const bool has_far_end = std::any_of(own.begin(), own.end(), [&](const Descriptor& one) {
    return one.kind == descriptor.kind && one.inode == far_end && (one.flags & O_ACCMODE) != O_RDONLY &&
           (one.flags & O_NONBLOCK) != 0;
  });
  if (!has_far_end) return false;
  const auto& maps = snapshot->maps(pid);
  return std::any_of(maps.begin(), maps.end(), [](const Mapping& mapping) { return is_python_module(mapping.path); });
}

}  // namespace mprun
