// Progress: shows that a thread gets somewhere although it is always found at the same place, as in a loop that works
// for a moment and sleeps for long. Made for one look at a tree; lives in the watcher.
#pragma once

#include <map>

#include "watch/sample/sample.h"
#include "watch/stacks/python_stack.h"

namespace mprun {

class Progress {
 public:
  /// `proc` must outlive it.
  explicit Progress(ProcSource* proc) : proc_(proc) {}

  /// A fingerprint of how much the thread has read and written so far (not by calls of sockets) and, if it wakes up by
  /// itself, of the variables of the user's own Python and the magnitude of its limit in milliseconds. With SQLite,
  /// what it has read does not count: while that waits for a lock, it reads its file again and again.
  [[nodiscard]] std::uint64_t of(const ThreadSample& thread);

 private:
  [[nodiscard]] bool has_sqlite(pid_t pid);

  ProcSource* proc_;
  std::map<pid_t, PythonStacks> python_;  ///< by process
  std::map<pid_t, bool> has_sqlite_;      ///< the same
};

}  // namespace mprun
