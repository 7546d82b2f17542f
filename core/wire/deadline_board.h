// mprun's side of the board of deadlines; deadlines.h has its layout. The watched processes write its content, which
// may be anything.
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

  /// The path by which the processes below find it, for MPRUN_DEADLINES; valid as long as the board lives.
  [[nodiscard]] std::string path() const;
  /// The deadlines that are set now.
  [[nodiscard]] std::vector<Deadline> read() const;
  /// Whether a mapping in /proc/PID/maps maps this board.
  [[nodiscard]] bool is_mapping(std::uint64_t device, std::uint64_t inode) const {
    return memory_.is_mapping(device, inode);
  }

 private:
  explicit DeadlineBoard(SharedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] const mprun_deadline_board* board() const {
    return static_cast<const mprun_deadline_board*>(memory_.data());
  }
  SharedMemory memory_;
};

}  // namespace mprun
