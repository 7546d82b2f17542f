#include "os/text_backlog.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

bool is_writable(int fd, int milliseconds) {
  pollfd asked{fd, POLLOUT, 0};
  return uninterrupted([&] { return poll(&asked, 1, milliseconds); }) == 1 && asked.revents != 0;
}

// O_NONBLOCK belongs to an open file description, and that of a standard stream is shared with other processes. A pipe
// or a terminal can be opened again.
Fd open_again(int fd, mode_t mode) {
  if (!S_ISFIFO(mode) && isatty(fd) == 0) return {};
  return open_fd("/proc/self/fd/" + std::to_string(fd), O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

TextBacklog::TextBacklog(int fd) : fd_(fd) {
  struct stat status {};
  broken_ = fstat(fd, &status) != 0;
  if (broken_) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  own_ = open_again(fd, status.st_mode);
}

bool TextBacklog::takes_text() const { return !broken_ && unsent_.empty() && is_writable(fd_, 0); }

void TextBacklog::add(std::string_view text) {
  if (broken_) return;
  if (unsent_.size() + text.size() > kMostBytes) {
    ++left_out_;
  } else {
    unsent_ += text;
  }
  send();
}

// The fallback: a descriptor that polls writable takes PIPE_BUF bytes, unless another process writes meanwhile.
ssize_t TextBacklog::write_some(std::string_view text) const {
  if (own_) return write(own_.get(), text.data(), text.size());
  if (is_socket_) return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (is_writable(fd_, 0)) return write(fd_, text.data(), text.size());
  errno = EAGAIN;
  return -1;
}

void TextBacklog::send() {
  while (!unsent_.empty()) {
    const auto part = std::string_view(unsent_).substr(0, PIPE_BUF);
    const ssize_t written = uninterrupted([&] { return write_some(part); });
    if (written >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(written));
      continue;
    }
    if (errno != EAGAIN) give_up();
    return;
  }
}

void TextBacklog::give_up() {
  broken_ = true;
  unsent_.clear();
}

void TextBacklog::finish() {
  if (left_out_ > 0 && !broken_) {
    unsent_ += "mprun: " + std::to_string(left_out_) + " messages are left out here: the reader was too slow\n";
  }
  left_out_ = 0;
  for (send(); is_waiting(); send()) {
    if (is_writable(fd_, -1)) continue;
    (void)write_all(fd_, unsent_);  // poll fails: the write itself waits
    give_up();
  }
}

}  // namespace mprun
