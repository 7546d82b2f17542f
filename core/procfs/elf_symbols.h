// ElfImage: an executable or shared library as it lies in the memory of a watched process, the addresses of the symbols
// it exports, and which functions of others it has called. Nothing is read but that memory: the file may be gone,
// replaced, or of another mount namespace. ELF64 of our own byte order; formats: elf(5), and the GNU hash table as
// binutils writes it.
#pragma once

#include <span>
#include <string_view>

#include "procfs/process_memory.h"

namespace mprun {

struct ElfSymbol {
  std::uint64_t address = 0;  ///< in the watched process
  std::uint64_t size = 0;
};

class ElfImage {
 public:
  /// The image whose ELF header is mapped at `header` (the begin of its mapping with offset 0); nullopt if there is
  /// none that makes sense. `memory` must outlive the image.
  [[nodiscard]] static std::optional<ElfImage> open(ProcessMemory* memory, std::uint64_t header);

  /// An exported symbol that is defined in this image and has an address in it.
  [[nodiscard]] std::optional<ElfSymbol> find(std::string_view name);
  /// Whether a symbol has this name, or one that ends so: of a function that it defines, or that it may call. False if
  /// there are too many names to read.
  [[nodiscard]] bool has_name(std::string_view name);
  /// Whether it has called one of these functions of another image, as lazy binding shows: until the first call, the
  /// function's slot leads into this image. False if no slot does: all were bound when it was loaded (-z now, or by
  /// dlopen with RTLD_NOW, as extensions of Python are with all that they need), and nothing can be seen.
  [[nodiscard]] bool has_called(std::span<const std::string_view> functions);

 private:
  explicit ElfImage(ProcessMemory* memory) : memory_(memory) {}
  [[nodiscard]] bool read_segments(std::uint64_t header);
  [[nodiscard]] bool read_dynamic(std::uint64_t address, std::uint64_t size);
  [[nodiscard]] std::uint64_t located(std::uint64_t pointer) const;
  [[nodiscard]] std::optional<ElfSymbol> find_gnu(std::string_view name);
  [[nodiscard]] std::optional<ElfSymbol> find_sysv(std::string_view name);
  [[nodiscard]] std::optional<ElfSymbol> symbol(std::uint32_t index, std::string_view name);

  ProcessMemory* memory_;
  std::uint64_t bias_ = 0;             ///< of an address in memory over the one in the file
  std::uint64_t begin_ = 0, end_ = 0;  ///< of its segments, in memory
  std::uint64_t gnu_hash_ = 0, hash_ = 0, symbols_ = 0, strings_ = 0, strings_size_ = 0;
  std::uint64_t slots_ = 0, slots_size_ = 0;  ///< of functions that are called by way of a slot
};

}  // namespace mprun
