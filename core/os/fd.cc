#include "os/fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/uninterrupted.h"

namespace mprun {

void Fd::reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Error system_error(const std::string& what, int error_number) {
  std::string text = what + ": " + std::strerror(error_number);
  if (error_number == EMFILE || error_number == ENFILE) text += " (raise the limit with `ulimit -n`)";
  return internal_error(std::move(text));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

Result<SocketPair> make_socket_pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return system_error("cannot make a socket pair", errno);
  }
  return SocketPair{Fd(fds[0]), Fd(fds[1])};
}

bool send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> room{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return uninterrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); }) == 1;
}

Fd open_fd(const std::string& path, int flags, unsigned mode) { return open_fd_at(AT_FDCWD, path, flags, mode); }

Fd open_fd_at(int folder, const std::string& path, int flags, unsigned mode) {
  return Fd(uninterrupted([&] { return openat(folder, path.c_str(), flags | O_CLOEXEC, mode); }));
}

int null_device() {
  static const Fd device = open_fd("/dev/null", O_RDWR);
  return device.get();
}

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  Fd fd = open_fd(path, flags, mode);
  if (!fd) return system_error("cannot open " + path, errno);
  return fd;
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

Result<std::string> read_all(int fd) {
  std::string text;
  std::array<char, std::size_t{64} * 1024> piece{};
  for (;;) {
    const ssize_t n = uninterrupted([&] { return read(fd, piece.data(), piece.size()); });
    if (n < 0) return system_error("cannot read", errno);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = uninterrupted([&] { return write(fd, data.data(), data.size()); });
    if (n < 0) return system_error("cannot write", errno);
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string why_not_replaced(const std::string& path) {
  std::array<char, 6> target{};  // of a link such as /dev/stdout
  const bool linked = readlink(path.c_str(), target.data(), target.size()) == static_cast<ssize_t>(target.size());
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return "";
  if (S_ISDIR(found.st_mode)) return "is a directory";
  const bool regular = S_ISREG(found.st_mode) && !(linked && std::memcmp(target.data(), "/proc/", target.size()) == 0);
  return regular ? "" : "is no regular file";
}

ssize_t pread_all(int fd, void* to, std::size_t size, std::uint64_t at) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = uninterrupted(
        [&] { return pread(fd, static_cast<char*>(to) + done, size - done, static_cast<off_t>(at + done)); });
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

bool pwrite_all(int fd, const void* from, std::size_t size, std::uint64_t at) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = uninterrupted(
        [&] { return pwrite(fd, static_cast<const char*>(from) + done, size - done, static_cast<off_t>(at + done)); });
    if (n == 0) errno = EIO;  // no progress: a retry would loop for ever
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace mprun
