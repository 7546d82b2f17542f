#include "record/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/uninterrupted.h"

namespace mprun {
bool LineReader::copy_line(int fd, std::uint64_t offset, std::string* to) {
  for (;;) {
    if ((offset < begin_ || offset >= begin_ + length_) && !load(fd, offset)) return false;
    const std::string_view rest =
        std::string_view(window_).substr(0, length_).substr(static_cast<std::size_t>(offset - begin_));
    const std::size_t newline = rest.find('\n');
    if (newline != rest.npos) {
      to->append(rest.substr(0, newline + 1));
      return true;
    }
    to->append(rest);
    offset += rest.size();
  }
}

bool LineReader::has_line(std::uint64_t offset) const {
  if (offset < begin_ || offset >= begin_ + length_) return false;
  return std::string_view(window_).substr(0, length_).find('\n', static_cast<std::size_t>(offset - begin_)) !=
         std::string_view::npos;
}

std::size_t LineReader::copy_bytes(int fd, std::uint64_t offset, std::size_t most, std::string* to) {
  const std::size_t before = to->size();
  to->resize(before + most);
  const ssize_t count = uninterrupted([&] { return pread(fd, to->data() + before, most, static_cast<off_t>(offset)); });
  to->resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return to->size() - before;
}

bool LineReader::load(int fd, std::uint64_t offset) {
  // A window that begins some way before the wanted line also holds lines that are out of order by less than that.
  const std::size_t way = most_ / 4;
  const bool near = wanted_ != 0 && offset + way >= begin_ && offset < begin_ + length_ + way;
  goes_back_ = near && (goes_back_ || offset < begin_);
  wanted_ = near ? std::min(wanted_ * 2, most_) : kSmallestWindow;
  if (window_.size() < wanted_) window_.resize(wanted_);
  begin_ = goes_back_ ? offset - std::min<std::uint64_t>(offset, wanted_ / 4) : offset;
  const ssize_t count = uninterrupted([&] { return pread(fd, window_.data(), wanted_, static_cast<off_t>(begin_)); });
  length_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  const bool there = begin_ + length_ > offset;
  if (!there) error_number_ = count < 0 ? errno : 0;
  return there;
}

Result<std::uint64_t> for_each_line(const std::string& path,
                                    const std::function<void(std::string_view, std::uint64_t)>& take) {
  const auto file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return usage_error(file.error().message);
  struct stat info {};
  if (fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) return usage_error(path + " is not a regular file");
  LineReader reader;
  std::uint64_t offset = 0;
  std::string line;
  while (offset < static_cast<std::uint64_t>(info.st_size)) {
    line.clear();
    if (!reader.copy_line(file->get(), offset, &line)) {
      if (reader.error_number() != 0) return system_error("cannot read " + path, reader.error_number());
      break;  // the last line has no end
    }
    take(std::string_view(line).substr(0, line.size() - 1), offset);
    offset += line.size();
  }
  return offset;
}

}  // namespace mprun
