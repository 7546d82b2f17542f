// AppendFile: a file that only grows, is written in large pieces, and remembers its first failure. Used by the results
// and joblog writers in mprun (one thread); owns the fd and one reused buffer.
//
// Lines are appended straight to buffer(); end_line() writes it out once it is large. After a failure nothing more is
// written and appended data is dropped, so that callers check once per pulse, not once per line. Writing to a pipe
// needs SIGPIPE to be ignored, and blocks while the pipe is full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace mprun {

class AppendFile {
 public:
  /// In pieces of 64 KiB, a job of a million trivial tasks took a tenth longer.
  static constexpr std::size_t kFlushBytes = std::size_t{512} * 1024;

  /// Creates or empties the file; `option` is the command-line option that error messages name as the cure.
  [[nodiscard]] static Result<AppendFile> create(const std::string& path, const char* option);
  /// Opens an existing file to continue after its first `bytes`; the rest is cut off.
  [[nodiscard]] static Result<AppendFile> reopen(const std::string& path, std::uint64_t bytes, const char* option);
  /// Takes over an open fd (standard output), which is only ever written to.
  AppendFile(Fd fd, std::string path, const char* option);

  /// Where callers append; holds what is not yet written.
  [[nodiscard]] std::string& buffer() { return buffer_; }
  /// Marks the end of what was appended; writes the buffer out if it is large.
  void end_line() {
    if (buffer_.size() >= kFlushBytes || failure_) flush();
  }
  /// Appends a piece of any size; writes the buffer out if it is large.
  void append(std::string_view piece) {
    buffer_.append(piece);
    end_line();
  }
  /// Writes all that is buffered; false if the file has failed, now or before.
  bool flush();
  /// Writes only what the fd takes without blocking: for a standard output that may have no active reader.
  void flush_ready();

  /// Bytes in the file, buffered ones included.
  [[nodiscard]] std::uint64_t size() const { return written_ + buffer_.size(); }
  /// Bytes in the file; after a failure it ends with a whole line.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Records a failure of the disk as a failure of this file.
  void fail(int error_number);
  /// The first failure, with what to do about it.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  Fd fd_;
  std::string path_;
  const char* option_;
  bool cut_on_failure_ = false;  ///< a regular file of ours: a partial last line is cut off again
  std::string buffer_;
  std::uint64_t written_ = 0;
  std::uint64_t whole_lines_ = 0;  ///< bytes up to and including the last newline in the file
  std::optional<Error> failure_;
};

/// "cannot write PATH: REASON" and, by the errno, what to do about it with `option`.
[[nodiscard]] std::string write_failure_text(const std::string& path, int error_number, const char* option);

}  // namespace mprun
