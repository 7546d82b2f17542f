// Waits for one descriptor: pipes and UNIX sockets have another end that somebody must hold; anything else is the
// outside.
#include "watch/wait.h"

namespace mprun {
namespace {

Wait decode_pipe(const Descriptor& descriptor, World::End end, World* world) {
  const bool reads = end == World::End::kRead;
  const WaitKind kind = reads ? WaitKind::kPipeRead : WaitKind::kPipeWrite;
  if (world->is_foreign(descriptor.inode)) return live_wait(kind, "a pipe from outside");
  Wait wait{kind, "pipe " + std::to_string(descriptor.inode), {}, {}};
  add_processes(world->pipe_holders(descriptor.inode, reads ? World::End::kWrite : World::End::kRead), &wait);
  // Without any holder the call would have ended: there is one that cannot be seen, a descriptor on its way, say.
  if (wait.wakers.empty()) return live_wait(kind, "nobody is seen at the other end of the pipe");
  return wait;
}

Wait decode_socket(pid_t pid, const Descriptor& descriptor, World* world) {
  const UnixSocket* socket = world->unix_socket(descriptor.inode);
  if (socket == nullptr) return live_wait(WaitKind::kSocket, "a network connection");
  if (socket->listening) return live_wait(WaitKind::kSocket, "anybody may connect");
  if (socket->peer == 0) return live_wait(WaitKind::kSocket, "a socket without a peer");
  if (world->is_foreign(descriptor.inode) || world->is_foreign(socket->peer)) {
    return live_wait(WaitKind::kSocket, "a socket to the outside");
  }
  const auto holders = world->socket_holders(socket->peer);
  if (holders.empty()) return live_wait(WaitKind::kSocket, "nobody is seen at the other end of the socket");
  if (world->proc()->socket_has_timeout(pid, descriptor.number).value_or(true)) {
    return live_wait(WaitKind::kSocket, "a socket with a time limit");
  }
  Wait wait{WaitKind::kSocket, "socket " + std::to_string(descriptor.inode), {}, {}};
  add_processes(holders, &wait);
  add_processes(world->socket_holders(descriptor.inode), &wait);  // shutdown() works from this end too
  return wait;
}

}  // namespace

Wait decode_descriptor(const ThreadSample& thread, std::int64_t number, World::End end, World* world) {
  const Descriptor* descriptor = world->descriptor(thread.pid, number);
  if (descriptor == nullptr) return live_wait(WaitKind::kOther, "an unknown descriptor");
  switch (descriptor->kind) {
    case Descriptor::Kind::kPipe:
      return decode_pipe(*descriptor, end, world);
    case Descriptor::Kind::kSocket:
      return decode_socket(thread.pid, *descriptor, world);
    case Descriptor::Kind::kPidfd: {
      if (descriptor->process <= 0 || world->process(descriptor->process) == nullptr) break;
      Wait wait{WaitKind::kChild, "process " + std::to_string(descriptor->process), {}, {{descriptor->process, 0}}};
      return wait;
    }
    default:
      break;
  }
  return live_wait(WaitKind::kOther, descriptor->target);
}

}  // namespace mprun
