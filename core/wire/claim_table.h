// The supervisor's side of the claim table: shared memory with one line per worker slot. protocol.h defines the words.
#pragma once

#include "os/shared_memory.h"
#include "wire/protocol.h"

namespace mprun {

class ClaimTable {
 public:
  [[nodiscard]] static Result<ClaimTable> create(int slots) {
    auto memory = SharedMemory::create("mprun-claims", sizeof(mprun_claim_slot) * static_cast<std::size_t>(slots));
    if (!memory) return memory.error();
    return ClaimTable(std::move(*memory));
  }

  [[nodiscard]] int fd() const { return memory_.fd(); }
  [[nodiscard]] mprun_claim_slot* slot(int index) { return static_cast<mprun_claim_slot*>(memory_.data()) + index; }

 private:
  explicit ClaimTable(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

}  // namespace mprun
