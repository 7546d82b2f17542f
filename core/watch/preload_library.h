// The preload library's variables in the memory of a watched process: what it says of its process without sending it.
#pragma once

#include <string_view>

#include "procfs/elf_symbols.h"
#include "procfs/process_facts.h"

namespace mprun {

/// The mappings with an ELF header of our libraries in /proc/PID/maps: of every mprun that a process is below.
[[nodiscard]] std::vector<Mapping> preload_libraries(std::string_view maps);

/// The address of an exported variable of that library; nullopt: it has none, or cannot be read.
[[nodiscard]] std::optional<std::uint64_t> variable_of(const Mapping& library, std::string_view name,
                                                       ProcessMemory* memory);

}  // namespace mprun
