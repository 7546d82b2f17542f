// The board as the supervisor holds it: a memory file with one line per worker slot, mapped by the
// workers too. protocol.h says what the words mean.
#pragma once

#include "base/result.h"
#include "os/fd.h"
#include "wire/protocol.h"

namespace mprun {

class Board {
 public:
  [[nodiscard]] static Result<Board> create(int slots);
  Board(Board&& other) noexcept;
  Board& operator=(Board&& other) noexcept;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  [[nodiscard]] int fd() const { return memory_.get(); }
  [[nodiscard]] mprun_board_slot* slot(int index) { return slots_ + index; }

 private:
  Board(Fd memory, mprun_board_slot* slots, std::size_t bytes)
      : memory_(std::move(memory)), slots_(slots), bytes_(bytes) {}
  Fd memory_;
  mprun_board_slot* slots_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace mprun
