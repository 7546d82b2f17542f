// The board of deadlines as mprun holds it. deadlines.h says what is in it. What it holds was written by the watched
// processes, and may be anything.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "os/shared_memory.h"
#include "wire/deadlines.h"

namespace mprun {

struct Deadline {
  unsigned line = 0;
  pid_t pid = 0, tid = 0;
  Nanos due = 0, limit = 0;  ///< monotonic; it began at due - limit
  std::string label;         ///< as the program gave it: any bytes
};

class DeadlineBoard {
 public:
  [[nodiscard]] static Result<DeadlineBoard> create();

  /// Where the processes below find it, for MPRUN_DEADLINES; good for as long as the board lives.
  [[nodiscard]] std::string path() const;
  /// Those that run.
  [[nodiscard]] std::vector<Deadline> read() const;
  /// Whether a mapping of a process, as /proc/PID/maps tells it, is of this board.
  [[nodiscard]] bool is_mapping(std::uint64_t device, std::uint64_t inode) const;

 private:
  explicit DeadlineBoard(SharedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] const mprun_deadline_board* board() const {
    return static_cast<const mprun_deadline_board*>(memory_.data());
  }
  SharedMemory memory_;
};

}  // namespace mprun
