#include "wire/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace mprun {

Result<Board> Board::create(int slots) {
  Fd memory(memfd_create("mprun-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return system_error("cannot make the board", errno);
  const std::size_t bytes = sizeof(mprun_board_slot) * static_cast<std::size_t>(slots);
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return system_error("cannot size the board", errno);
  // No worker can shrink it under us: a read of ours never faults.
  fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (address == MAP_FAILED) return system_error("cannot map the board", errno);
  return Board(std::move(memory), static_cast<mprun_board_slot*>(address), bytes);
}

Board::Board(Board&& other) noexcept
    : memory_(std::move(other.memory_)), slots_(std::exchange(other.slots_, nullptr)), bytes_(other.bytes_) {}

Board& Board::operator=(Board&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(slots_, other.slots_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Board::~Board() {
  if (slots_ != nullptr) munmap(slots_, bytes_);
}

}  // namespace mprun
