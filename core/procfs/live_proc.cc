#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "os/fd.h"
#include "os/uninterrupted.h"
#include "procfs/address_spaces.h"
#include "procfs/live_memory.h"
#include "procfs/proc_source.h"

namespace mprun {
namespace {

constexpr std::size_t kLargestFile = 64U << 20U;  ///< the maps of a process of half a million mappings
constexpr std::size_t kMostNames = 4U << 20U;     ///< in one folder
constexpr std::size_t kMostNamed = 65536;         ///< files that are compared by their inodes
constexpr std::size_t kMostSockets = 1U << 20U;

/// True for a name below the root: openat() would leave it for any other.
bool is_below(const std::string& path) { return !path.empty() && path.front() != '/'; }

bool all_digits(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Numbers by value, before all other names. /proc writes no leading zeros.
bool name_less(const std::string& a, const std::string& b) {
  const bool a_number = all_digits(a);
  if (a_number != all_digits(b)) return a_number;
  if (a_number && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

/// What the kernel reports about all UNIX sockets.
struct UnixSockets {
  std::vector<UnixSocket> all;
  std::map<std::uint64_t, std::uint64_t> awaited;  ///< of connections that were not accepted: (client, listener)
};

/// What one message of unix_diag reports about one socket; nullopt if it is cut short. `awaited`: filled if it listens.
std::optional<UnixSocket> decode_socket(const char* data, std::size_t size,
                                        std::map<std::uint64_t, std::uint64_t>* awaited) {
  unix_diag_msg head{};
  if (size < sizeof head) return std::nullopt;
  std::memcpy(&head, data, sizeof head);
  UnixSocket socket;
  socket.inode = head.udiag_ino;
  socket.listening = head.udiag_state == TCP_LISTEN;
  socket.datagram = head.udiag_type == SOCK_DGRAM;
  std::size_t at = NLMSG_ALIGN(sizeof head);
  while (at + sizeof(nlattr) <= size) {
    nlattr attribute{};
    std::memcpy(&attribute, data + at, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > size - at) return std::nullopt;
    const char* value = data + at + NLA_HDRLEN;
    const std::size_t length = attribute.nla_len - NLA_HDRLEN;
    if (attribute.nla_type == UNIX_DIAG_PEER && length >= sizeof(std::uint32_t)) {
      std::uint32_t peer = 0;
      std::memcpy(&peer, value, sizeof peer);
      socket.peer = peer;
    } else if (attribute.nla_type == UNIX_DIAG_ICONS) {
      std::uint32_t client = 0;
      for (std::size_t i = 0; i + sizeof client <= length; i += sizeof client) {
        std::memcpy(&client, value + i, sizeof client);
        awaited->emplace(client, socket.inode);
      }
    } else if (attribute.nla_type == UNIX_DIAG_NAME) {
      socket.name.assign(value, strnlen(value, length));  // an abstract name starts with a NUL
    } else if (attribute.nla_type == UNIX_DIAG_RQLEN && length >= sizeof socket.unread) {
      std::memcpy(&socket.unread, value, sizeof socket.unread);
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return socket;
}

enum class Dump { kMore, kDone, kFailed };

/// Takes the sockets out of one datagram of the kernel's answer.
Dump decode_datagram(const char* data, std::size_t size, UnixSockets* sockets) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr head{};
    std::memcpy(&head, data, sizeof head);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > size) return Dump::kFailed;
    if (head.nlmsg_flags & NLM_F_DUMP_INTR) return Dump::kFailed;
    if (head.nlmsg_type == NLMSG_DONE) return Dump::kDone;
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return Dump::kFailed;
    auto socket = decode_socket(data + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN, &sockets->awaited);
    if (!socket || sockets->all.size() >= kMostSockets) return Dump::kFailed;
    sockets->all.push_back(std::move(*socket));
    const std::size_t step = std::min<std::size_t>(NLMSG_ALIGN(head.nlmsg_len), size);
    data += step;
    size -= step;
  }
  return Dump::kMore;
}

// Of one option of a socket; 0: none.
std::optional<Nanos> time_limit_of(int socket, int option) {
  constexpr Nanos kNanosPerMicro = 1000;
  timeval time{};
  socklen_t size = sizeof time;
  if (getsockopt(socket, SOL_SOCKET, option, &time, &size) != 0) return std::nullopt;
  return time.tv_sec * kNanosPerSecond + time.tv_usec * kNanosPerMicro;
}

// How long a read waits for its first byte: VTIME, in tenths of a second, where VMIN is 0.
std::optional<Nanos> limit_of_terminal(int terminal) {
  termios settings{};
  if (tcgetattr(terminal, &settings) != 0) return std::nullopt;
  if ((settings.c_lflag & ICANON) != 0 || settings.c_cc[VMIN] != 0) return 0;
  const Nanos limit = settings.c_cc[VTIME] * (kNanosPerSecond / 10);
  return limit == 0 ? std::nullopt : std::optional(limit);  // no read would wait
}

// After which time a connection of TCP gives up what its peer does not take; 0: never, or it is none.
Nanos user_timeout_of(int socket) {
  unsigned milliseconds = 0;
  socklen_t size = sizeof milliseconds;
  if (getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) != 0) return 0;
  return milliseconds * kNanosPerMilli;
}

class LiveProc : public ProcSource {
 public:
  explicit LiveProc(const std::string& root)
      : root_(open_fd(root, O_RDONLY | O_DIRECTORY)), buffer_(std::size_t{1} << 16U) {}

  std::optional<std::string> read(const std::string& path) override {
    if (!root_ || !is_below(path)) return std::nullopt;
    // O_NONBLOCK: a path that leads to a FIFO must not block us.
    const Fd file = open_fd_at(root_.get(), path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (!file) return std::nullopt;
    std::string text;
    while (true) {
      const ssize_t n = uninterrupted([&] { return ::read(file.get(), buffer_.data(), buffer_.size()); });
      if (n < 0) return std::nullopt;
      if (n == 0) return text;
      if (text.size() + static_cast<std::size_t>(n) > kLargestFile) return std::nullopt;
      text.append(buffer_.data(), static_cast<std::size_t>(n));
    }
  }

  std::optional<std::string> link(const std::string& path) override {
    if (!root_ || !is_below(path)) return std::nullopt;
    const ssize_t n = readlinkat(root_.get(), path.c_str(), buffer_.data(), buffer_.size());
    if (n < 0 || static_cast<std::size_t>(n) == buffer_.size()) return std::nullopt;
    return std::string(buffer_.data(), static_cast<std::size_t>(n));
  }

  std::optional<std::vector<std::string>> list(const std::string& path) override {
    if (!root_ || !is_below(path)) return std::nullopt;
    const int fd = uninterrupted([&] { return openat(root_.get(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return std::nullopt;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd), closedir);
    if (!folder) {
      close(fd);
      return std::nullopt;
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(folder.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (names.size() >= kMostNames) return std::nullopt;
      names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return std::nullopt;
    // Our own descriptors include the one that the list was read from.
    if (path == std::to_string(getpid()) + "/fd" || path == "self/fd") std::erase(names, std::to_string(fd));
    std::sort(names.begin(), names.end(), name_less);
    return names;
  }

  bool memory(pid_t pid, std::uint64_t address, void* to, std::size_t size) override {
    return read_live_memory(pid, address, to, size);
  }

  std::optional<std::vector<UnixSocket>> unix_sockets() override {
    const Fd kernel(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!kernel) return std::nullopt;
    struct {
      nlmsghdr head;
      unix_diag_req request;
    } question{};
    question.head.nlmsg_len = sizeof question;
    question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    question.request.sdiag_family = AF_UNIX;
    question.request.udiag_states = ~0U;
    question.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN;
    sockaddr_nl to{};
    to.nl_family = AF_NETLINK;
    const auto* address = reinterpret_cast<const sockaddr*>(&to);
    if (uninterrupted([&] { return sendto(kernel.get(), &question, sizeof question, 0, address, sizeof to); }) < 0) {
      return std::nullopt;
    }
    UnixSockets sockets;
    while (true) {
      // The kernel makes the next part of its answer while we take this one: there is always one, or an error.
      const ssize_t n =
          uninterrupted([&] { return recv(kernel.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC); });
      if (n <= 0 || static_cast<std::size_t>(n) > buffer_.size()) return std::nullopt;
      const Dump dump = decode_datagram(buffer_.data(), static_cast<std::size_t>(n), &sockets);
      if (dump == Dump::kFailed) return std::nullopt;
      if (dump == Dump::kMore) continue;
      // The other end of a connection that was not accepted has no number yet.
      for (UnixSocket& socket : sockets.all) {
        const auto listener = sockets.awaited.find(socket.inode);
        if (socket.peer == 0 && listener != sockets.awaited.end()) socket.peer = listener->second;
      }
      return std::move(sockets.all);
    }
  }

  std::optional<Nanos> time_limit(pid_t pid, int fd) override {
    // Closing a copy of another file can do things (flush a file of a network file system): look first.
    const auto target = link(std::to_string(pid) + "/fd/" + std::to_string(fd));
    const bool is_terminal = target && target->starts_with("/dev/pts/");
    if (!is_terminal && (!target || !target->starts_with("socket:["))) return std::nullopt;
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return std::nullopt;
    const Fd copy(static_cast<int>(syscall(__NR_pidfd_getfd, process.get(), fd, 0)));  // CLOEXEC, as pidfds are
    if (!copy) return std::nullopt;
    if (is_terminal) return limit_of_terminal(copy.get());
    const auto receive = time_limit_of(copy.get(), SO_RCVTIMEO);
    const auto send = time_limit_of(copy.get(), SO_SNDTIMEO);
    if (!receive || !send) return std::nullopt;
    Nanos shortest = 0;
    for (const Nanos limit : {*receive, *send, user_timeout_of(copy.get())}) {
      if (limit != 0 && (shortest == 0 || limit < shortest)) shortest = limit;
    }
    return shortest;
  }

  std::optional<bool> same_memory(pid_t one, pid_t other) override {
    const long order = syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
    if (order >= 0) return order == 0;
    return have_separate_memory(one, other) ? std::optional(false) : std::nullopt;
  }

  std::optional<bool> same_files(pid_t one, pid_t other) override {
    const long order = syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0);
    return order < 0 ? std::nullopt : std::optional(order == 0);
  }

  std::optional<bool> same_file(pid_t one, int fd, pid_t other, int other_fd) override {
    const long order = syscall(SYS_kcmp, one, other, KCMP_FILE, fd, other_fd);
    return order < 0 ? std::nullopt : std::optional(order == 0);
  }

  std::optional<std::vector<std::string>> names_of(pid_t pid, const std::string& folder, std::uint64_t inode) override {
    const auto path = below_root_of(pid, folder);
    const auto names = path ? list(*path) : std::nullopt;
    if (!names || names->size() > kMostNamed) return std::nullopt;
    std::vector<std::string> found;
    for (const std::string& name : *names) {
      struct stat file {};
      const std::string file_path = *path + "/" + name;
      if (fstatat(root_.get(), file_path.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0) {
        if (file.st_ino == inode) found.push_back(name);
      } else if (errno != ENOENT) {
        return std::nullopt;
      }
    }
    return found;
  }

  std::optional<NamedPipe> named_pipe(pid_t pid, const std::string& path) override {
    const auto fifo = facts_of(pid, path);
    const auto folder = facts_of(pid, path.substr(0, path.rfind('/') + 1));
    if (!fifo || !folder || !S_ISFIFO(fifo->stx_mode)) return std::nullopt;
    const Nanos now = wall_now();
    const auto age = [now](const struct statx& facts) {
      return now - (facts.stx_btime.tv_sec * kNanosPerSecond + facts.stx_btime.tv_nsec);
    };
    return NamedPipe{age(*fifo), age(*folder), is_private_folder(pid, path.substr(0, path.rfind('/'))).value_or(false)};
  }

  std::optional<pid_t> semaphore_user(int set, unsigned number) override {
    const int pid = semctl(set, static_cast<int>(number), GETPID);
    return pid < 0 ? std::nullopt : std::optional<pid_t>(pid);
  }

  std::optional<bool> is_private_folder(pid_t pid, const std::string& folder) override {
    struct stat status {};
    const auto path = below_root_of(pid, folder);
    if (!path || fstatat(root_.get(), path->c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & kOthers) == 0;
  }

 private:
  // nullopt also where the file system does not know when it was made.
  std::optional<struct statx> facts_of(pid_t pid, const std::string& path) const {
    struct statx facts {};
    const auto below = below_root_of(pid, path);
    if (!below || statx(root_.get(), below->c_str(), 0, STATX_TYPE | STATX_BTIME, &facts) != 0) return std::nullopt;
    return (facts.stx_mask & STATX_BTIME) != 0 ? std::optional(facts) : std::nullopt;
  }

  // Its own root: that of a container, maybe.
  std::optional<std::string> below_root_of(pid_t pid, const std::string& folder) const {
    if (!root_ || folder.empty() || folder.front() != '/') return std::nullopt;
    return std::to_string(pid) + "/root" + folder;
  }

  Fd root_;
  std::vector<char> buffer_;
};

}  // namespace

std::unique_ptr<ProcSource> live_proc(const std::string& root) { return std::make_unique<LiveProc>(root); }

}  // namespace mprun
