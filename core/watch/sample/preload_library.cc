#include "watch/sample/preload_library.h"

#include <algorithm>

#include "wire/alarms.h"

namespace mprun {

// Parses only the library's own lines: with torch loaded, there are a thousand others.
std::vector<Mapping> preload_libraries(std::string_view maps) {
  std::string lines;
  for (std::size_t at = maps.find(MPRUN_PRELOAD_NAME); at != std::string_view::npos;
       at = maps.find(MPRUN_PRELOAD_NAME, at)) {
    const std::size_t begin = maps.rfind('\n', at) + 1;
    const std::size_t end = std::min(maps.find('\n', at), maps.size());
    lines.append(maps.substr(begin, end - begin)).push_back('\n');
    at = end;
  }
  std::vector<Mapping> mappings = parse_maps(lines);
  std::erase_if(mappings, [](const Mapping& mapping) { return mapping.offset != 0; });
  return mappings;
}

std::optional<std::uint64_t> variable_of(const Mapping& library, std::string_view name, ProcessMemory* memory) {
  auto image = ElfImage::open(memory, library.begin);
  const auto symbol = image ? image->find(name) : std::nullopt;
  return symbol ? std::optional(symbol->address) : std::nullopt;
}

}  // namespace mprun
