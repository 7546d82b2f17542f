#include "watch/sample/linked_functions.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "procfs/elf_symbols.h"

namespace mprun {
namespace {

constexpr std::size_t kMostOfTables = std::size_t{1} << 20U;  // read of one image

}  // namespace

bool may_call(std::string_view function, ProcSource* proc, pid_t tid, const std::vector<Mapping>& maps) {
  return std::any_of(maps.begin(), maps.end(), [&](const Mapping& mapping) {
    if (mapping.offset != 0 || mapping.inode == 0) return false;
    ProcessMemory memory(proc, tid, kMostOfTables);
    const auto magic = memory.read<std::array<char, SELFMAG>>(mapping.begin);
    if (!magic || std::memcmp(magic->data(), ELFMAG, SELFMAG) != 0) return false;  // a file with data
    auto image = ElfImage::open(&memory, mapping.begin);
    return !image || (image->has_name(function) && !image->find(function));  // else it is linked statically
  });
}

}  // namespace mprun
