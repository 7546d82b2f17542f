// Brings files to disk: fdatasync(2) for the bytes of a file, fsync(2) for the names in a directory (for which ext4
// does nothing on fdatasync). A file that cannot be synced at all (a pipe, some file systems) is as safe as it can be:
// that is no failure.
//
// FileSync syncs files one after the other while the caller goes on. The records use it on mprun's only thread: a
// disk takes milliseconds, and results arrive every few microseconds. It uses Linux AIO (io_submit(2); fdatasync since
// 4.18), which needs no thread. Where the kernel has no AIO, start() waits.
#pragma once

#include <linux/aio_abi.h>

#include <deque>
#include <string>
#include <vector>

#include "os/fd.h"

namespace mprun {

/// Syncs a file or a directory; returns the errno of a failure, or 0.
[[nodiscard]] int sync_now(int fd);
/// The same for the names in a directory (empty: the current one). One that may not be read is left unsynced.
[[nodiscard]] int sync_directory(const std::string& path);

class FileSync {
 public:
  FileSync() = default;
  FileSync(const FileSync&) = delete;
  FileSync& operator=(const FileSync&) = delete;
  /// Waits for syncs under way.
  ~FileSync();

  /// Starts to sync these files in this order; only when idle. Closes each descriptor of `owned` when it is done.
  void start(std::vector<Fd> owned, int last);
  /// The same, and waits for it. It uses no AIO, whose end costs a process tens of milliseconds: the kernel waits for a
  /// grace period of RCU.
  void run(const std::vector<Fd>& owned, int last);
  /// True if no sync is under way; starts the next file when one is done.
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
  bool refused_ = false;  ///< the kernel refused AIO
  std::deque<Fd> owned_;
  int last_ = -1;     ///< synced after `owned_`; -1: done
  int current_ = -1;  ///< the kernel is syncing it; -1: none
  iocb request_{};
  int error_number_ = 0;
};

}  // namespace mprun
