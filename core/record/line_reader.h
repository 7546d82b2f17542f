// LineReader: reads single lines of a file that only grows, by their offsets, to put results in order.
// Used by ResultsWriter and merge_results(); owns one window of the file, which adapts to how sequential the reads are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "record/append_file.h"

namespace mprun {

class LineReader {
 public:
  static constexpr std::size_t kSmallestWindow = std::size_t{4} * 1024;
  static constexpr std::size_t kLargestWindow = std::size_t{256} * 1024;

  /// `most`: bytes of the window at most, however sequential the reads are.
  explicit LineReader(std::size_t most = kLargestWindow) : most_(most) {}

  /// Appends the line that begins at `offset`, newline included, to `to`; false: it has no end, or cannot be read.
  bool copy_line(int fd, std::uint64_t offset, std::string* to);
  /// Whether the window has the whole line, so that copy_line() needs no file.
  [[nodiscard]] bool has_line(std::uint64_t offset) const;
  /// Appends at most `most` bytes from `offset` on; returns how many.
  static std::size_t copy_bytes(int fd, std::uint64_t offset, std::size_t most, std::string* to);
  /// Why the last line could not be read; 0: the file ends before it does.
  [[nodiscard]] int error_number() const { return error_number_; }

 private:
  bool load(int fd, std::uint64_t offset);

  std::string window_;
  std::uint64_t begin_ = 0;  ///< of the window, in the file
  std::size_t length_ = 0;   ///< of what the window holds
  std::size_t wanted_ = 0;   ///< bytes of the last read
  std::size_t most_;
  bool goes_back_ = false;  ///< lines are a little out of order: those just before are wanted, too
  int error_number_ = 0;
};

/// Calls `take` with every whole line of a regular file, without its newline, and with its offset; returns the bytes of
/// whole lines. kUsage errors: the file does not exist, or is not a regular file; others: it cannot be read.
[[nodiscard]] Result<std::uint64_t> for_each_line(const std::string& path,
                                                  const std::function<void(std::string_view, std::uint64_t)>& take);

}  // namespace mprun
