// An ELF image in the memory of a process, with arbitrary content.
#include "procfs/elf_symbols.h"

#include "fuzz_memory.h"
#include "fuzz_support.h"
#include "targets.h"

namespace mprun::fuzz {

void elf_symbols(std::string_view input) {
  constexpr std::uint64_t kBase = 0x10000;
  FuzzMemory proc(kBase, std::string(input));
  ProcessMemory memory(&proc, 1, std::size_t{1} << 20U);
  auto image = ElfImage::open(&memory, kBase);
  if (!image) return;
  for (const char* name : {"one", "two", "_PyRuntime", ""}) {
    const auto symbol = image->find(name);
    require(!symbol || symbol->address + symbol->size >= symbol->address, "a symbol lies in the image");
  }
  require(proc.reads() < 100000, "the reads are bounded");
}

}  // namespace mprun::fuzz
