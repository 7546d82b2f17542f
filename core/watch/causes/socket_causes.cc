// Sockets that a process has both ends of, or whose events it has missed: rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

bool reads_socket(const JudgedThread& thread) {
  return thread.wait.kind == WaitKind::kSocket && call_of(thread.sample->call.number) == Call::kRead;
}

std::uint64_t unread_bytes(const Evidence& evidence, pid_t pid, const Descriptor& descriptor) {
  if (const UnixSocket* socket = evidence.snapshot->unix_socket(descriptor.inode)) return socket->unread;
  for (const TcpSocket& socket : evidence.snapshot->tcp_sockets(pid)) {
    if (socket.inode == descriptor.inode) return socket.unread;
  }
  return 0;
}

// A wait for new data, while there is data that makes no event any more.
std::optional<Explanation> missed_edge_of(const Evidence& evidence, const JudgedThread& thread) {
  const Call call = call_of(thread.sample->call.number);
  if (call != Call::kEpollWait && call != Call::kEpollWait2) return std::nullopt;
  const pid_t pid = thread.sample->pid;
  const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* epoll = evidence.snapshot->descriptor(pid, number);
  if (epoll == nullptr) return std::nullopt;
  for (const int watched : epoll->edge_triggered) {
    const Descriptor* socket = evidence.snapshot->descriptor(pid, watched);
    if (socket == nullptr || socket->kind != Descriptor::Kind::kSocket) continue;
    const std::uint64_t unread = unread_bytes(evidence, pid, *socket);
    if (unread == 0) continue;
    return Explanation{
        thread_text(thread) + " waits in epoll for new data on descriptor " + std::to_string(watched) + ", and " +
            std::to_string(unread) +
            " bytes are there that it has not read: added with EPOLLET or EPOLLONESHOT, they were reported once",
        {},
        true};
  }
  return std::nullopt;
}

// The listener at which a connection waits to be accepted; 0: it was accepted, or is none.
std::uint64_t awaited_listener(const Evidence& evidence, pid_t pid, std::uint64_t connection) {
  if (const UnixSocket* socket = evidence.snapshot->unix_socket(connection)) {
    const UnixSocket* peer = evidence.snapshot->unix_socket(socket->peer);
    return peer != nullptr && peer->listening ? peer->inode : 0;
  }
  const auto& sockets = evidence.snapshot->tcp_sockets(pid);
  const auto find = [&](const auto& matches) { return std::find_if(sockets.begin(), sockets.end(), matches); };
  const auto own = find([&](const TcpSocket& socket) { return socket.inode == connection; });
  if (own == sockets.end()) return 0;
  const auto peer = find([&](const TcpSocket& socket) {
    return socket.inode == 0 && socket.local == own->remote && socket.remote == own->local;
  });
  if (peer == sockets.end()) return 0;
  const auto port = peer->local.substr(peer->local.find(':'));
  const auto listener = find([&](const TcpSocket& socket) {
    return socket.state == TcpSocket::State::kListening && socket.local.ends_with(port);
  });
  return listener == sockets.end() ? 0 : listener->inode;
}

std::uint64_t socket_of(const Evidence& evidence, const JudgedThread& thread) {
  const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* socket = evidence.snapshot->descriptor(thread.sample->pid, number);
  return socket == nullptr ? 0 : socket->inode;
}

// Whether two sockets of a process are the ends of one connection.
bool are_connected(const Evidence& evidence, pid_t pid, std::uint64_t one, std::uint64_t other) {
  if (const UnixSocket* socket = evidence.snapshot->unix_socket(one)) return socket->peer == other;
  const auto& sockets = evidence.snapshot->tcp_sockets(pid);
  const auto find = [&](std::uint64_t inode) {
    return std::find_if(sockets.begin(), sockets.end(), [inode](const auto& socket) { return socket.inode == inode; });
  };
  const auto near = find(one), far = find(other);
  return near != sockets.end() && far != sockets.end() && near->local == far->remote && near->remote == far->local;
}

}  // namespace

bool asks_itself(const Evidence& evidence, const JudgedThread& thread) {
  const pid_t pid = thread.sample->pid;
  const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* connection = evidence.snapshot->descriptor(pid, number);
  if (!reads_socket(thread) || connection == nullptr) return false;
  const std::uint64_t listener = awaited_listener(evidence, pid, connection->inode);
  if (listener == 0) return false;
  const auto holders = evidence.snapshot->socket_holders(listener);
  const auto has_it = [&](pid_t one) { return std::find(holders.begin(), holders.end(), one) != holders.end(); };
  return has_it(pid) && !has_it(evidence.snapshot->process(pid)->parent);
}

std::optional<Explanation> edge_missed(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread)) continue;
    if (auto missed = missed_edge_of(evidence, thread)) return missed;
  }
  return std::nullopt;
}

// The same where nothing is proved: what a connection of TCP has received may be reported any moment.
std::optional<Explanation> edge_missed_for_long(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (auto missed = missed_edge_of(evidence, thread)) return missed;
  }
  return std::nullopt;
}

std::optional<Explanation> server_asks_itself(const Evidence& evidence) {
  const JudgedThread* asks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return asks_itself(evidence, thread); });
  if (asks == nullptr) return std::nullopt;
  return Explanation{thread_text(*asks) + " waits for an answer on a connection (" + asks->wait.object +
                     ") to a server of its own process, of which no thread is left to accept it"};
}

// Two threads of a process read from the ends of one connection.
std::optional<Explanation> threads_read_from_each_other(const Evidence& evidence) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || !reads_socket(thread)) continue;
    const pid_t pid = thread.sample->pid;
    const std::uint64_t own = socket_of(evidence, thread);
    const JudgedThread* other = find_stuck(evidence, [&](const JudgedThread& one) {
      return one.sample->pid == pid && reads_socket(one) && are_connected(evidence, pid, own, socket_of(evidence, one));
    });
    if (other == nullptr) continue;
    return Explanation{"two threads wait for each other: " + thread_text(thread) + " waits to read from " +
                           thread.wait.object + ", and " + thread_text(*other) +
                           " from the other end of that connection",
                       {},
                       true};
  }
  return std::nullopt;
}

}  // namespace mprun
