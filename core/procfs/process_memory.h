// ProcessMemory: typed reads of the memory of a watched process, with a limit on their sum, so that garbage and hostile
// data cost a bounded time. Used by readers that follow pointers there (ELF tables, the structures of an interpreter).
#pragma once

#include <type_traits>

#include "procfs/proc_source.h"

namespace mprun {

class ProcessMemory {
 public:
  /// Reads `most` bytes in all, then nothing more. `proc` must outlive this.
  ProcessMemory(ProcSource* proc, pid_t pid, std::size_t most) : proc_(proc), pid_(pid), left_(most) {}

  /// False if not all of it can be read, or the limit is passed.
  [[nodiscard]] bool read(std::uint64_t address, void* to, std::size_t size) {
    if (address == 0 || size > left_ || address + size < address) return false;
    left_ -= size;
    return proc_->memory(pid_, address, to, size);
  }

  template <typename T>
  [[nodiscard]] std::optional<T> read(std::uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!read(address, &value, sizeof value)) return std::nullopt;
    return value;
  }

  /// `size` bytes as a string.
  [[nodiscard]] std::optional<std::string> bytes(std::uint64_t address, std::size_t size) {
    if (size > left_) return std::nullopt;
    std::string text(size, '\0');
    if (!read(address, text.data(), size)) return std::nullopt;
    return text;
  }

 private:
  ProcSource* proc_;
  pid_t pid_;
  std::size_t left_;
};

}  // namespace mprun
