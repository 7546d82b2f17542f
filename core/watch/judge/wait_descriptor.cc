// Waits for one descriptor: pipes, UNIX sockets and eventfds have another end that some process must hold; anything
// else is the outside. A call keeps its file even if the descriptor is closed meanwhile, which cannot be seen. So a
// descriptor is assumed to stay open while a thread waits for it.
#include <fcntl.h>

#include <algorithm>
#include <array>

#include "watch/judge/library_waits.h"
#include "watch/judge/partners.h"
#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

std::string name_of(const char* kind, std::uint64_t number) { return kind + (" " + std::to_string(number)); }

std::string closed_descriptor(std::int64_t number) {
  return name_of("descriptor", static_cast<std::uint64_t>(number)) + ", which its process does not have any more";
}

// A close() by another thread ends no wait that has begun. What that waits for cannot be seen any more: any process of
// the tree may have the other end, and so may one outside.
Wait decode_closed(const ThreadSample& thread, std::int64_t number, TreeSnapshot* snapshot) {
  if (!snapshot->assumptions().no_outside_peers || !snapshot->blind_spot().empty()) {
    return live_wait(WaitKind::kOther, closed_descriptor(number));
  }
  snapshot->assume("a process outside may use what descriptor " + std::to_string(number) + " of process " +
                   std::to_string(thread.pid) + " stood for");
  Wait wait{WaitKind::kOther, closed_descriptor(number), {}, {}};
  wait.closed = true;
  add_processes(snapshot->everybody(), &wait);
  return wait;
}

// multiprocessing's forkserver reports the end of each child through a pipe (Popen.sentinel). The pipe does not show
// which child it belongs to. nullopt: it is another pipe.
std::optional<Wait> decode_sentinel(pid_t pid, const std::vector<pid_t>& writers, TreeSnapshot* snapshot) {
  const TreeSnapshot::Process* writer = writers.size() == 1 ? snapshot->process(writers.front()) : nullptr;
  if (writer == nullptr || writer->pid == pid || writer->children.empty() || !snapshot->is_forkserver(*writer)) {
    return std::nullopt;
  }
  std::string names;
  for (const pid_t child : writer->children) names += (names.empty() ? "process " : " or ") + std::to_string(child);
  Wait wait{WaitKind::kChild, names, {}, {}};
  add_processes(writer->children, &wait);
  // It may be about to write. Its own end would end all of these waits, but it lives as long as any of them.
  if (writer->moved || !writer->ended_children.empty()) add_processes(writers, &wait);
  return wait;
}

// `end`: what the waiter does with the pipe; the other end can end the wait.
Wait decode_pipe(pid_t pid, const Descriptor& descriptor, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  const bool reads = end == TreeSnapshot::End::kRead;
  const WaitKind kind = reads ? WaitKind::kPipeRead : WaitKind::kPipeWrite;
  if (snapshot->is_foreign(descriptor)) return live_wait(kind, "a pipe from outside");
  const auto others =
      snapshot->pipe_holders(descriptor.inode, reads ? TreeSnapshot::End::kWrite : TreeSnapshot::End::kRead);
  if (reads) {
    if (auto sentinel = decode_sentinel(pid, others, snapshot)) return std::move(*sentinel);
  }
  Wait wait{kind, name_of("pipe", descriptor.inode), {}, {}};
  add_processes(others, &wait);
  // Without any holder, the call would have ended: there is one that cannot be seen, such as a descriptor on its way.
  if (wait.wakers.empty()) return live_wait(kind, "no process is seen at the other end of the pipe");
  return wait;
}

constexpr const char* kOthersMayConnect = "any process may connect";

bool is_of_this_machine(std::string_view address) {
  constexpr std::string_view kIpv6 = "00000000000000000000000001000000:";
  const std::size_t end = address.find(':');
  const bool is_loopback = end == 8 && address.substr(6, 2) == "7F";  // 127.x.x.x, the last byte first
  return is_loopback || address.substr(0, kIpv6.size()) == kIpv6;
}

bool is_connection_to(const TcpSocket& socket, std::string_view port) {
  return socket.state == TcpSocket::State::kEstablished && socket.remote.ends_with(port);
}

bool has_torch(pid_t pid, TreeSnapshot* snapshot) { return uses_torch(snapshot->maps(pid)); }

bool listens_at(pid_t pid, std::string_view port, TreeSnapshot* snapshot) {
  const auto& sockets = snapshot->tcp_sockets(pid);
  return std::any_of(sockets.begin(), sockets.end(), [&](const TcpSocket& socket) {
    if (socket.state != TcpSocket::State::kListening || !socket.local.ends_with(port)) return false;
    const auto holders = snapshot->socket_holders(socket.inode);
    return std::find(holders.begin(), holders.end(), pid) != holders.end();
  });
}

// A process at the other end of a connection to `port` for which `is_one` holds.
template <typename Predicate>
bool has_client(pid_t pid, std::string_view port, TreeSnapshot* snapshot, const Predicate& is_one) {
  const auto& sockets = snapshot->tcp_sockets(pid);
  return std::any_of(sockets.begin(), sockets.end(), [&](const TcpSocket& socket) {
    if (!is_connection_to(socket, port)) return false;
    const auto holders = snapshot->socket_holders(socket.inode);
    return std::any_of(holders.begin(), holders.end(), is_one);
  });
}

// Gloo's listeners stay open in PyTorch 2: a process that a rank in a collective has connected to is a rank itself,
// whatever its Python does meanwhile.
bool serves_rank(pid_t pid, std::string_view port, TreeSnapshot* snapshot) {
  return has_torch(pid, snapshot) && has_client(pid, port, snapshot, [&](pid_t client) {
           return client != pid && snapshot->rank_phase(client) == RankPhase::kMet;
         });
}

// The loop in which a thread of gloo serves the listener, the connections to other ranks, and a pipe by which it is
// woken. It asks for 64 events every 10 ms (gloo/transport/tcp/loop.cc).
bool is_loop_of_gloo(const ThreadSample& thread) {
  return call_of(thread.call.number) == Call::kEpollWait && thread.call.arguments[2] == 64 &&
         thread.call.arguments[3] == 10;
}

bool is_listener_of_gloo(pid_t pid, const TcpSocket& listener, TreeSnapshot* snapshot) {
  const auto& own = snapshot->process(pid)->descriptors;
  const auto is_loop = [&](const ThreadSample& thread) {
    if (thread.pid != pid || !is_loop_of_gloo(thread)) return false;
    const Descriptor* epoll = snapshot->descriptor(pid, static_cast<std::int32_t>(thread.call.arguments[0]));
    const auto polls = [&](std::uint64_t inode) {
      return std::find(epoll->watched_inodes.begin(), epoll->watched_inodes.end(), inode) !=
             epoll->watched_inodes.end();
    };
    return epoll != nullptr && polls(listener.inode) && std::any_of(own.begin(), own.end(), [&](const Descriptor& one) {
             return one.kind == Descriptor::Kind::kPipe && polls(one.inode);
           });
  };
  return has_torch(pid, snapshot) && std::any_of(snapshot->threads().begin(), snapshot->threads().end(), is_loop);
}

// A rank of torch.distributed to which so far only processes of the tree have connected; before all have met, by an
// address that no other machine could use.
bool only_ranks_come(pid_t pid, const TcpSocket& listener, TreeSnapshot* snapshot) {
  const std::string_view port = std::string_view(listener.local).substr(listener.local.find(':'));
  RankPhase phase = snapshot->rank_phase(pid);
  if (phase == RankPhase::kNone && (serves_store(pid, port, snapshot) || serves_rank(pid, port, snapshot) ||
                                    is_listener_of_gloo(pid, listener, snapshot))) {
    phase = RankPhase::kMet;
  }
  const auto& sockets = snapshot->tcp_sockets(pid);
  return phase != RankPhase::kNone && std::none_of(sockets.begin(), sockets.end(), [&](const TcpSocket& socket) {
           return is_connection_to(socket, port) &&
                  (snapshot->socket_holders(socket.inode).empty() ||
                   (phase == RankPhase::kMeets && !is_of_this_machine(socket.remote)));
         });
}

// A socket of ZeroMQ (libzmq 4), to which processes of the tree have connected and no other. Its I/O thread stays at
// the listener as long as the socket is open.
bool only_zeromq_peers_come(pid_t pid, const TcpSocket& listener, TreeSnapshot* snapshot) {
  const std::string_view port = std::string_view(listener.local).substr(listener.local.find(':'));
  const auto& sockets = snapshot->tcp_sockets(pid);
  return uses_zeromq(snapshot->maps(pid)) && has_client(pid, port, snapshot, [](pid_t) { return true; }) &&
         std::none_of(sockets.begin(), sockets.end(), [&](const TcpSocket& socket) {
           return is_connection_to(socket, port) && snapshot->socket_holders(socket.inode).empty();
         });
}

// `who`: the one who, it is assumed, does not connect. `partners`: who else may. `may_idle`: a server that has no
// clients waits so.
Wait wait_for_connections(pid_t pid, const std::string& who, const std::vector<pid_t>& partners, TreeSnapshot* snapshot,
                          bool may_idle = false) {
  const std::string assumed = who + " may connect to process " + std::to_string(pid);
  may_idle ? snapshot->assume_no_client(assumed) : snapshot->assume(assumed);
  Wait wait{WaitKind::kSocket, "connections", {}, {}};
  add_processes(partners, &wait);
  return wait;
}

Wait wait_for_zeromq(pid_t pid, TreeSnapshot* snapshot) {
  return wait_for_connections(pid, "a process outside", possible_partners(pid, uses_zeromq, snapshot), snapshot);
}

Wait wait_for_ranks(pid_t pid, TreeSnapshot* snapshot) {
  return wait_for_connections(pid, "a rank that was started elsewhere", possible_partners(pid, uses_torch, snapshot),
                              snapshot);
}

Wait decode_tcp_listener(pid_t pid, const TcpSocket& listener, TreeSnapshot* snapshot) {
  if (snapshot->assumptions().no_outside_peers) {
    if (only_ranks_come(pid, listener, snapshot)) return wait_for_ranks(pid, snapshot);
    if (only_zeromq_peers_come(pid, listener, snapshot)) return wait_for_zeromq(pid, snapshot);
  }
  return live_wait(WaitKind::kSocket, kOthersMayConnect);
}

// The same at a path (ipc://): a socket that the listener has accepted has its name.
bool only_zeromq_peers_come(pid_t pid, const UnixSocket& listener, TreeSnapshot* snapshot) {
  if (listener.name.empty() || !uses_zeromq(snapshot->maps(pid))) return false;
  bool has_peer = false;
  for (const Descriptor& descriptor : snapshot->process(pid)->descriptors) {
    const UnixSocket* socket =
        descriptor.kind == Descriptor::Kind::kSocket ? snapshot->unix_socket(descriptor.inode) : nullptr;
    if (socket == nullptr || socket->listening || socket->name != listener.name) continue;
    if (snapshot->socket_holders(socket->peer).empty() || snapshot->is_foreign(socket->peer)) return false;
    has_peer = true;
  }
  return has_peer;
}

// Any process that knows its name may connect. The name of multiprocessing's forkserver and of managers that it has
// started is random, in a folder that no other user may enter, and known to their own processes only. The names of
// other programs (such as ssh-agent) are meant for all processes of the user.
Wait decode_listener(pid_t pid, const UnixSocket& socket, TreeSnapshot* snapshot) {
  const std::size_t slash = socket.name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : socket.name.substr(0, slash);
  const std::string name = socket.name.substr(slash + 1);
  const bool is_own = folder.substr(folder.rfind('/') + 1).rfind("pymp-", 0) == 0 &&
                      (name.rfind("listener-", 0) == 0 || name.rfind("sock-", 0) == 0);  // since Python 3.14
  if (snapshot->assumptions().no_outside_peers && only_zeromq_peers_come(pid, socket, snapshot)) {
    return wait_for_zeromq(pid, snapshot);
  }
  if (!is_own || !snapshot->proc()->is_private_folder(pid, folder).value_or(false)) {
    return live_wait(WaitKind::kSocket, kOthersMayConnect);
  }
  const Clients clients = clients_of_listener(snapshot->python(pid).threads);
  const bool for_own_tree = clients != Clients::kAnybody;
  if (!for_own_tree || !snapshot->is_closed()) {
    const bool may_be_assumed = snapshot->assumptions().no_outside_peers && (for_own_tree || snapshot->is_closed());
    if (!may_be_assumed) return live_wait(WaitKind::kSocket, kOthersMayConnect);
    // A listener that the program has made itself may be that of a server.
    return wait_for_connections(pid, "a process of another program", snapshot->relatives_of(pid), snapshot,
                                !for_own_tree);
  }
  // A manager that setup() has made is known to every worker.
  if (clients == Clients::kTree && snapshot->may_start()) {
    return live_wait(WaitKind::kSocket, "mprun will start another process");
  }
  Wait wait{WaitKind::kSocket, "connections to " + socket.name, {}, {}};
  add_processes(clients == Clients::kRelatives ? snapshot->relatives_of(pid)
                : clients == Clients::kYounger ? snapshot->parent_and_younger(pid)
                                               : snapshot->all_but_hosts(),
                &wait);
  return wait;
}

// A wait at one end of a connection. The holders of both ends could end it: each may shut the connection down.
Wait wait_for_peer(const Descriptor& descriptor, const std::vector<pid_t>& peers, TreeSnapshot* snapshot) {
  Wait wait{WaitKind::kSocket, name_of("socket", descriptor.inode), {}, {}};
  add_processes(peers, &wait);
  add_processes(snapshot->socket_holders(descriptor.inode), &wait);  // shutdown() works from this end too
  return wait;
}

// Both ends of a connection within the machine are in one table, each with the addresses of the other.
Wait decode_tcp(pid_t pid, const Descriptor& descriptor, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  using State = TcpSocket::State;
  const auto& sockets = snapshot->tcp_sockets(pid);
  const auto find = [&](const auto& matches) { return std::find_if(sockets.begin(), sockets.end(), matches); };
  const auto own = find([&](const TcpSocket& socket) { return socket.inode == descriptor.inode; });
  if (own == sockets.end() || own->state == State::kOther) return live_wait(WaitKind::kSocket, "a network connection");
  if (own->state == State::kListening) return decode_tcp_listener(pid, *own, snapshot);
  const auto peer =
      find([&](const TcpSocket& socket) { return socket.local == own->remote && socket.remote == own->local; });
  if (peer == sockets.end()) return live_wait(WaitKind::kSocket, "a network connection");
  // There are bytes to read, or there is room for bytes to send: the kernel may just not have said so yet.
  const bool is_on_its_way = end == TreeSnapshot::End::kRead ? peer->unsent > 0 || own->unread > 0 : peer->unread == 0;
  if (peer->state != State::kEstablished || is_on_its_way) {
    return live_wait(WaitKind::kSocket, "a network connection that has data to read");
  }
  // With TCP_USER_TIMEOUT the connection ends if the peer does not take what was sent, which any wait notices.
  if (own->unsent > 0 && snapshot->proc()->time_limit(pid, descriptor.number) != 0) {
    return live_wait(WaitKind::kSocket, "a network connection with a time limit");
  }
  const auto port = peer->local.substr(peer->local.find(':'));
  std::vector<pid_t> holders;
  bool is_foreign = snapshot->is_foreign(descriptor);
  for (const TcpSocket& socket : sockets) {
    const bool may_accept = peer->inode == 0 && socket.state == State::kListening && socket.local.ends_with(port);
    if (!may_accept && &socket != &*peer) continue;
    is_foreign = is_foreign || snapshot->is_foreign(socket.inode);
    for (const pid_t holder : snapshot->socket_holders(socket.inode)) holders.push_back(holder);
  }
  if (holders.empty() || is_foreign) return live_wait(WaitKind::kSocket, "a network connection to the outside");
  return wait_for_peer(descriptor, holders, snapshot);
}

// A connected socket receives from its peer alone, datagrams too (unix_may_send() of Linux).
Wait decode_socket(pid_t pid, const Descriptor& descriptor, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  const UnixSocket* socket = snapshot->unix_socket(descriptor.inode);
  if (socket == nullptr) return decode_tcp(pid, descriptor, end, snapshot);
  if (snapshot->is_foreign(descriptor)) return live_wait(WaitKind::kSocket, "a socket to the outside");
  if (socket->listening) return decode_listener(pid, *socket, snapshot);
  if (socket->peer == 0) return live_wait(WaitKind::kSocket, "a socket without a peer");
  if (snapshot->is_foreign(socket->peer)) return live_wait(WaitKind::kSocket, "a socket to the outside");
  if (socket->datagram && end == TreeSnapshot::End::kWrite) {
    return live_wait(WaitKind::kSocket, "a datagram may go to any process");
  }
  const auto holders = snapshot->socket_holders(socket->peer);
  if (holders.empty()) return live_wait(WaitKind::kSocket, "no process is seen at the other end of the socket");
  return wait_for_peer(descriptor, holders, snapshot);
}

// The kernel may signal an eventfd too: for asynchronous I/O (aio), or a driver for one of its devices.
bool kernel_may_signal(const TreeSnapshot::Process& process, TreeSnapshot* snapshot) {
  constexpr std::array<std::string_view, 7> kTame{"/dev/null", "/dev/zero",    "/dev/full", "/dev/random",
                                                  "/dev/tty",  "/dev/urandom", "/dev/shm/"};
  const auto may_do_it = [&](const Descriptor& descriptor) {
    const std::string_view target = descriptor.target;
    if (descriptor.kind == Descriptor::Kind::kOther) return target.substr(0, 11) == "anon_inode:";
    if (descriptor.kind != Descriptor::Kind::kFile || target.substr(0, 5) != "/dev/") return false;
    if (target.substr(0, 9) == "/dev/shm/" || target.substr(0, 9) == "/dev/pts/") return false;
    return std::find(kTame.begin(), kTame.end(), target) == kTame.end();
  };
  if (std::any_of(process.descriptors.begin(), process.descriptors.end(), may_do_it)) return true;
  const auto& maps = snapshot->maps(process.pid);
  return maps.empty() || std::any_of(maps.begin(), maps.end(),
                                     [](const Mapping& mapping) { return mapping.path.rfind("/[aio]", 0) == 0; });
}

Wait decode_eventfd(const Descriptor& descriptor, TreeSnapshot* snapshot) {
  if (!descriptor.event_id) return live_wait(WaitKind::kEventfd, "an eventfd that cannot be distinguished from others");
  if (snapshot->is_foreign(descriptor)) return live_wait(WaitKind::kEventfd, "an eventfd from outside");
  for (const auto& [pid, process] : snapshot->processes()) {
    if (kernel_may_signal(process, snapshot)) return live_wait(WaitKind::kEventfd, "the kernel may signal the eventfd");
  }
  Wait wait{WaitKind::kEventfd, name_of("eventfd", *descriptor.event_id), {}, {}};
  add_processes(snapshot->eventfd_holders(descriptor.event_id), &wait);
  return wait;
}

// An idle ring completes nothing until a process that has it asks for something.
Wait decode_ring(const Descriptor& descriptor, TreeSnapshot* snapshot) {
  if (snapshot->is_foreign(descriptor)) return live_wait(WaitKind::kOther, "an io_uring from outside");
  if (descriptor.armed || descriptor.completed != 0) return live_wait(WaitKind::kOther, "an io_uring that is at work");
  Wait wait{WaitKind::kOther, name_of("io_uring", descriptor.info_inode), {}, {}};
  for (const auto& [pid, process] : snapshot->processes()) {
    const bool has_it = std::any_of(process.descriptors.begin(), process.descriptors.end(), [&](const Descriptor& one) {
      return one.kind == descriptor.kind && one.info_inode == descriptor.info_inode;
    });
    if (has_it) add_processes({pid}, &wait);
  }
  return wait;
}

// Event loops keep a timerfd in their epoll set and arm it for their next timer (Boost.Asio's epoll_reactor does). One
// that is not armed expires when a process that has it arms it. Timerfds have no number, so it may be any that has one;
// one without FD_CLOEXEC may have been inherited from outside.
Wait decode_timerfd(const Descriptor& descriptor, TreeSnapshot* snapshot) {
  if (descriptor.armed || (descriptor.flags & O_CLOEXEC) == 0 || !snapshot->is_closed() ||
      snapshot->has_timer_outside()) {
    return live_wait(WaitKind::kOther, descriptor.target);
  }
  Wait wait{WaitKind::kOther, "a timerfd that is not set", {}, {}};
  for (const auto& [pid, process] : snapshot->processes()) {
    for (const Descriptor& other : process.descriptors) {
      if (other.kind != descriptor.kind) continue;
      if (other.armed) return live_wait(WaitKind::kOther, descriptor.target);
      add_processes({pid}, &wait);
    }
  }
  return wait;
}

Wait decode_pidfd(const Descriptor& descriptor, TreeSnapshot* snapshot) {
  const TreeSnapshot::Process* process = descriptor.process > 0 ? snapshot->process(descriptor.process) : nullptr;
  if (process == nullptr) return live_wait(WaitKind::kOther, "the end of a process that is not known");
  return {WaitKind::kChild, "process " + std::to_string(process->pid), {}, {{process->pid, 0}}};
}

Wait decode_known(pid_t pid, const Descriptor& descriptor, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  if (!snapshot->blind_spot().empty()) return live_wait(WaitKind::kOther, snapshot->blind_spot());
  switch (descriptor.kind) {
    case Descriptor::Kind::kPipe:
      return decode_pipe(pid, descriptor, end, snapshot);
    case Descriptor::Kind::kSocket:
      return decode_socket(pid, descriptor, end, snapshot);
    case Descriptor::Kind::kEventfd:
      return decode_eventfd(descriptor, snapshot);
    case Descriptor::Kind::kPidfd:
      return decode_pidfd(descriptor, snapshot);
    case Descriptor::Kind::kIoUring:
      return decode_ring(descriptor, snapshot);
    case Descriptor::Kind::kTimerfd:
      return decode_timerfd(descriptor, snapshot);
    case Descriptor::Kind::kFile:
      if (auto terminal = decode_terminal(descriptor, end, snapshot)) return std::move(*terminal);
      if (auto fifo = decode_fifo(pid, descriptor.target, end, descriptor.flags, snapshot)) {
        return std::move(*fifo);
      }
      return live_wait(WaitKind::kOther, descriptor.target);
    default:
      return live_wait(WaitKind::kOther, descriptor.target);
  }
}

// VTIME of termios(3) may limit the read.
void limit_read_of_terminal(const ThreadSample& thread, std::int32_t number, TreeSnapshot* snapshot, Wait* wait) {
  if (snapshot->proc()->time_limit(thread.pid, number) == 0) return;
  const char* const why = "a terminal, which may limit the time that a read takes";
  if (snapshot->assumptions().no_limit_from == 0) {
    wait->why_live = why;
  } else {
    snapshot->assume(name_of("thread", thread.tid) + " reads " + why);
  }
}

}  // namespace

// Holds whatever Python does meanwhile: the process that serves the store is one of its own clients.
bool serves_store(pid_t pid, std::string_view port, TreeSnapshot* snapshot) {
  return has_torch(pid, snapshot) && listens_at(pid, port, snapshot) &&
         has_client(pid, port, snapshot, [pid](pid_t client) { return client == pid; });
}

// SO_RCVTIMEO and SO_SNDTIMEO limit these calls, but no poll. TCP_USER_TIMEOUT may limit them too.
Wait decode_descriptor(const ThreadSample& thread, std::int64_t number, TreeSnapshot::End end, TreeSnapshot* snapshot) {
  const Descriptor* descriptor = snapshot->descriptor(thread.pid, number);
  if (descriptor == nullptr) return decode_closed(thread, number, snapshot);
  Wait wait = decode_known(thread.pid, *descriptor, end, snapshot);
  const bool is_read = end == TreeSnapshot::End::kRead && wait.why_live.empty();
  if (is_read && may_be_wakeup(thread.pid, *descriptor, snapshot)) wait.why_live = kHandlerMayWrite;
  if (wait.kind == WaitKind::kPipeRead && slave_of_terminal(*descriptor))
    limit_read_of_terminal(thread, descriptor->number, snapshot, &wait);
  if (wait.kind != WaitKind::kSocket || !wait.why_live.empty()) return wait;
  const auto limit = snapshot->proc()->time_limit(thread.pid, descriptor->number);
  const Nanos no_limit_from = snapshot->assumptions().no_limit_from;
  if (limit && no_limit_from != 0 && *limit >= no_limit_from) {
    snapshot->assume(name_of("thread", thread.tid) + " reads or writes with a limit of " +
                     std::to_string(*limit / kNanosPerSecond) + " s");
  } else if (limit != 0) {
    wait.why_live = "a socket with a time limit";
  }
  return wait;
}

// A poll always reports a hang-up too: so the far ends of all that this descriptor can do count. The number comes from
// memory of the process, which may have changed since: one that is not open proves nothing.
Wait decode_polled(const ThreadSample& thread, std::int64_t number, TreeSnapshot* snapshot) {
  const Descriptor* descriptor = snapshot->descriptor(thread.pid, number);
  if (descriptor == nullptr) return live_wait(WaitKind::kOther, closed_descriptor(number));
  const auto mode = descriptor->flags & O_ACCMODE;
  if (descriptor->kind != Descriptor::Kind::kPipe || mode == O_RDONLY) {
    return decode_known(thread.pid, *descriptor, TreeSnapshot::End::kRead, snapshot);
  }
  Wait wait = decode_known(thread.pid, *descriptor, TreeSnapshot::End::kWrite, snapshot);
  if (mode != O_RDWR) return wait;
  const Wait reading = decode_known(thread.pid, *descriptor, TreeSnapshot::End::kRead, snapshot);
  if (wait.why_live.empty()) wait.why_live = reading.why_live;
  add_wakers(reading.wakers, &wait);
  return wait;
}

}  // namespace mprun
