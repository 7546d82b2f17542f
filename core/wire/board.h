// The board as the supervisor holds it: shared memory with one line per worker slot. protocol.h says what the words
// mean.
#pragma once

#include "os/shared_memory.h"
#include "wire/protocol.h"

namespace mprun {

class Board {
 public:
  [[nodiscard]] static Result<Board> create(int slots) {
    auto memory = SharedMemory::create("mprun-board", sizeof(mprun_board_slot) * static_cast<std::size_t>(slots));
    if (!memory) return memory.error();
    return Board(std::move(*memory));
  }

  [[nodiscard]] int fd() const { return memory_.fd(); }
  [[nodiscard]] mprun_board_slot* slot(int index) { return static_cast<mprun_board_slot*>(memory_.data()) + index; }

 private:
  explicit Board(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

}  // namespace mprun
