// Bringing files to disk: fdatasync(2) of a file's bytes, fsync(2) of a directory's names (for which ext4 does nothing
// on fdatasync). A file that cannot be synced at all (a pipe, some file systems) is as safe as it can be, and no
// failure.
//
// FileSync does so with some files, one after the other, while the caller goes on. Used by the records of mprun's
// one thread: a disk takes milliseconds, and results arrive every few microseconds. By Linux AIO (io_submit(2);
// fdatasync since 4.18), which needs no thread; where the kernel has none of it, start() waits.
#pragma once

#include <linux/aio_abi.h>

#include <deque>
#include <string>
#include <vector>

#include "os/fd.h"

namespace mprun {

/// Syncs a file or a directory; the errno of a failure, or 0.
[[nodiscard]] int sync_now(int fd);
/// The same for the names in a directory, empty for the current one; one that may not be read cannot be synced.
[[nodiscard]] int sync_directory(const std::string& path);

class FileSync {
 public:
  FileSync() = default;
  FileSync(const FileSync&) = delete;
  FileSync& operator=(const FileSync&) = delete;
  /// Waits for what is under way.
  ~FileSync();

  /// Begins to sync these files in this order; only when idle. Descriptors of `owned` are closed when they are done.
  void start(std::vector<Fd> owned, int last);
  /// True if nothing is under way (any more); begins with the next file when one is done.
  [[nodiscard]] bool idle();
  /// Waits until all is done.
  void wait();
  /// The errno of the first file that could not be synced, 0 if there is none.
  [[nodiscard]] int error_number() const { return error_number_; }

 private:
  void next();
  void take(long wanted);
  void note(int failure);

  aio_context_t context_ = 0;
  bool refused_ = false;  ///< the kernel does not do it
  std::deque<Fd> owned_;
  int last_ = -1;     ///< to be synced after those; -1: done
  int current_ = -1;  ///< what the kernel works on; -1: nothing
  iocb request_{};
  int error_number_ = 0;
};

}  // namespace mprun
