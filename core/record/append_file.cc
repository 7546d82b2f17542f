#include "record/append_file.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

constexpr std::size_t kKeptCapacity = std::size_t{1} << 20;  // a huge value must not pin its memory for the whole job

/// Waits until a non-blocking fd (an inherited standard output) takes data again.
void wait_writable(int fd) {
  pollfd waited{fd, POLLOUT, 0};
  uninterrupted([&] { return poll(&waited, 1, -1); });
}

}  // namespace

std::string write_failure_text(const std::string& path, int error_number, const char* option) {
  std::string text = "cannot write " + path + ": " + std::strerror(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    text += std::string("; free some space there, or choose another place with ") + option;
  } else if (error_number != EPIPE) {
    text += std::string("; choose another place with ") + option;
  }
  return text;
}

Result<AppendFile> AppendFile::create(const std::string& path, const char* option) {
  // Opened for reading too: lines are read back to put them in order. A FIFO opened so would never see its reader.
  struct stat info {};
  const bool plain = stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
  const int access = plain ? O_RDWR : O_WRONLY;
  Fd fd = open_fd(path, access | O_CREAT | O_TRUNC);
  if (!fd) return usage_error(write_failure_text(path, errno, option));
  AppendFile file{std::move(fd), path, option};
  file.cut_on_failure_ = plain;
  return file;
}

Result<AppendFile> AppendFile::reopen(const std::string& path, std::uint64_t bytes, const char* option) {
  Fd fd = open_fd(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!fd || uninterrupted([&] { return ftruncate(fd.get(), static_cast<off_t>(bytes)); }) != 0 ||
      lseek(fd.get(), static_cast<off_t>(bytes), SEEK_SET) < 0) {
    return usage_error(write_failure_text(path, errno, option));
  }
  AppendFile file{std::move(fd), path, option};
  file.cut_on_failure_ = true;
  file.written_ = file.whole_lines_ = bytes;
  return file;
}

AppendFile::AppendFile(Fd fd, std::string path, const char* option)
    : fd_(std::move(fd)), path_(std::move(path)), option_(option) {
  buffer_.reserve(kFlushBytes + kFlushBytes / 4);
}

bool AppendFile::flush() {
  if (failure_) {
    buffer_.clear();
    return false;
  }
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t count = uninterrupted([&] { return write(fd_.get(), rest.data(), rest.size()); });
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait_writable(fd_.get());
      continue;
    }
    if (count < 0) {
      fail(errno);
      return false;
    }
    const std::string_view done = rest.substr(0, static_cast<std::size_t>(count));
    if (const std::size_t newline = done.rfind('\n'); newline != done.npos) whole_lines_ = written_ + newline + 1;
    written_ += done.size();
    rest.remove_prefix(done.size());
  }
  buffer_.clear();
  if (buffer_.capacity() > kKeptCapacity) {
    buffer_.shrink_to_fit();
    buffer_.reserve(kFlushBytes + kFlushBytes / 4);
  }
  return true;
}

void AppendFile::flush_ready() {
  // A pipe that polls writable is sure to take PIPE_BUF bytes without blocking, but no more.
  std::size_t done = 0;
  for (pollfd ready{fd_.get(), POLLOUT, 0}; !failure_ && done < buffer_.size() && poll(&ready, 1, 0) == 1;) {
    const ssize_t count =
        write(fd_.get(), buffer_.data() + done, std::min<std::size_t>(PIPE_BUF, buffer_.size() - done));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (count < 0) {
      fail(errno);
      return;
    }
    done += static_cast<std::size_t>(count);
  }
  buffer_.erase(0, done);
  written_ += done;
}

void AppendFile::fail(int error_number) {
  failure_ = internal_error(write_failure_text(path_, error_number, option_));
  if (cut_on_failure_ && written_ != whole_lines_ &&
      uninterrupted([&] { return ftruncate(fd_.get(), static_cast<off_t>(whole_lines_)); }) != 0) {
    failure_->message += "; its last line is incomplete";
  }
  written_ = whole_lines_;
  buffer_.clear();
}

}  // namespace mprun
