// InputLines: the lines of a file, pipe or standard input, one by one, with a buffer of constant size. Used by the
// inputs `lines` and `jsonl`; owns the file unless it is standard input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace mprun::job {

class InputLines {
 public:
  enum class Next {
    kLine,     ///< `line` is the next one, without its newline; valid until the next call
    kEnd,      ///< no more
    kWait,     ///< a pipe has no data yet
    kTooLong,  ///< a line of more than kLongestLine bytes was skipped
    kFailed,   ///< reading failed, or the file is shorter than before rewind(): see failure(); kEnd follows
  };
  static constexpr std::size_t kLongestLine = std::size_t{1} << 30U;

  /// Opens a file, or standard input for "-". Errors are kUsage and name the path.
  [[nodiscard]] static Result<InputLines> open(const std::string& path, std::size_t longest = kLongestLine);

  [[nodiscard]] Next next(std::string_view* line);
  /// The number of the last line that next() returned, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// Whether it is a regular file, which can be read twice and never makes the reader wait.
  [[nodiscard]] bool is_regular() const { return regular_; }
  /// The descriptor to wait on; -1 for a regular file.
  [[nodiscard]] int wait_fd() const { return regular_ ? -1 : descriptor(); }
  /// Counts the lines of a regular file by a scan for newlines; lines appended to it later are not read.
  [[nodiscard]] Result<std::uint64_t> count();
  /// Goes back to the first line of a regular file.
  void rewind();

 private:
  enum class Fill { kData, kEnd, kWait, kFailed };
  InputLines() = default;
  [[nodiscard]] int descriptor() const { return owned_ ? owned_.get() : 0; }
  Fill fill();
  Next take_line(std::size_t newline, std::string_view* line);
  Next take_rest(std::string_view* line);

  Fd owned_;
  bool regular_ = false;
  bool again_ = false;  ///< rewind() was called: size_ is certain
  bool ended_ = false;
  bool skipping_ = false;     ///< inside a line that is too long
  std::uint64_t start_ = 0;   ///< of a regular file: the first byte to read
  std::uint64_t offset_ = 0;  ///< and the next
  std::uint64_t size_ = 0;    ///< and the end, as it was when first read
  std::uint64_t number_ = 0;
  std::size_t longest_ = kLongestLine;
  std::string buffer_;
  std::size_t begin_ = 0;    ///< of the unread bytes in the buffer
  std::size_t end_ = 0;      ///< and their end
  std::size_t scanned_ = 0;  ///< no newline in front of this one
  std::string failure_;
};

}  // namespace mprun::job
