#include "job/input_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/uninterrupted.h"

namespace mprun::job {

namespace {

constexpr std::size_t kBlock = std::size_t{256} * 1024;

ssize_t read_at(int fd, bool regular, char* to, std::size_t size, std::uint64_t offset) {
  return uninterrupted([&] { return regular ? pread(fd, to, size, static_cast<off_t>(offset)) : read(fd, to, size); });
}

/// Whether read() would return at once. O_NONBLOCK would work too, but changes standard input for every process that
/// shares it.
bool is_ready(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return uninterrupted([&] { return poll(&entry, 1, 0); }) != 0;  // if poll() fails, read() will report why
}

}  // namespace

Result<InputLines> InputLines::open(const std::string& path, std::size_t longest) {
  InputLines lines;
  lines.longest_ = longest;
  if (path != "-") {
    // O_NONBLOCK: opening a FIFO must not wait for its writer; this description is ours alone
    lines.owned_ = open_fd(path, O_RDONLY | O_NONBLOCK);
    if (!lines.owned_) return usage_error(path + ": cannot be read: " + std::strerror(errno));
  }
  struct stat status {};
  if (fstat(lines.descriptor(), &status) != 0) {
    return usage_error((path == "-" ? "standard input" : path) + ": cannot be read: " + std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) return usage_error(path + ": is a directory, not a file of inputs");
  lines.regular_ = S_ISREG(status.st_mode);
  if (lines.regular_) {
    const off_t at = lines.owned_ ? 0 : lseek(0, 0, SEEK_CUR);
    lines.start_ = lines.offset_ = static_cast<std::uint64_t>(std::max<off_t>(0, at));
    lines.size_ = std::max(lines.start_, static_cast<std::uint64_t>(status.st_size));
  }
  return lines;
}

void InputLines::rewind() {
  offset_ = start_;
  number_ = 0;
  begin_ = end_ = scanned_ = 0;
  ended_ = skipping_ = false;
  again_ = true;
}

Result<std::uint64_t> InputLines::count() {
  std::string block(std::min<std::uint64_t>(kBlock * 4, size_ - start_), '\0');
  std::uint64_t lines = 0;
  char last = '\n';
  for (std::uint64_t at = start_; at < size_;) {
    const std::size_t wanted = std::min<std::uint64_t>(block.size(), size_ - at);
    const ssize_t n = read_at(descriptor(), true, block.data(), wanted, at);
    if (n < 0) return usage_error(std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) size_ = at;
    if (n == 0) break;
    lines += static_cast<std::uint64_t>(std::count(block.begin(), block.begin() + n, '\n'));
    last = block[static_cast<std::size_t>(n) - 1];
    at += static_cast<std::uint64_t>(n);
  }
  return last == '\n' ? lines : lines + 1;
}

InputLines::Fill InputLines::fill() {
  if (!regular_ && !is_ready(descriptor())) return Fill::kWait;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  std::size_t wanted = std::max(kBlock, buffer_.size() * 2);
  if (regular_) wanted = std::min<std::uint64_t>(wanted, end_ + (size_ - offset_));  // small files need no more
  if (buffer_.size() - end_ < kBlock / 2 && wanted > buffer_.size()) buffer_.resize(wanted);
  std::size_t room = buffer_.size() - end_;
  if (regular_) room = std::min<std::uint64_t>(room, size_ - offset_);
  const ssize_t n = room == 0 ? 0 : read_at(descriptor(), regular_, buffer_.data() + end_, room, offset_);
  if (n < 0 && errno == EAGAIN) return Fill::kWait;
  if (n < 0) failure_ = std::string("reading failed: ") + std::strerror(errno);
  if (again_ && n == 0 && offset_ < size_) failure_ = "the file has become shorter while it was read";
  if (!failure_.empty()) return Fill::kFailed;
  if (regular_ && n == 0) size_ = offset_;  // some file systems claim more than there is
  offset_ += static_cast<std::uint64_t>(n);
  end_ += static_cast<std::size_t>(n);
  return n == 0 ? Fill::kEnd : Fill::kData;
}

InputLines::Next InputLines::take_line(std::size_t newline, std::string_view* line) {
  *line = std::string_view(buffer_).substr(begin_, newline - begin_);
  begin_ = scanned_ = newline + 1;
  ++number_;
  const bool too_long = skipping_ || line->size() > longest_;
  skipping_ = false;
  return too_long ? Next::kTooLong : Next::kLine;
}

InputLines::Next InputLines::take_rest(std::string_view* line) {
  ended_ = true;
  if (begin_ == end_ && !skipping_) return Next::kEnd;
  const std::size_t end = end_;
  const Next next = take_line(end, line);
  begin_ = scanned_ = end;
  return next;
}

InputLines::Next InputLines::next(std::string_view* line) {
  while (!ended_) {
    const void* found = std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_);
    if (found != nullptr) {
      return take_line(static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()), line);
    }
    scanned_ = end_;
    if (skipping_ || end_ - begin_ > longest_) {
      skipping_ = true;
      begin_ = end_;
    }
    switch (fill()) {
      case Fill::kData:
        break;
      case Fill::kWait:
        return Next::kWait;
      case Fill::kEnd:
        return take_rest(line);
      case Fill::kFailed:
        ended_ = true;
        return Next::kFailed;
    }
  }
  return Next::kEnd;
}

}  // namespace mprun::job
