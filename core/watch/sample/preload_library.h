// Reads variables of the preload library in a watched process: what it records there instead of sending it.
#pragma once

#include <string_view>

#include "procfs/elf_symbols.h"
#include "procfs/process_facts.h"

namespace mprun {

/// The mappings in /proc/PID/maps with an ELF header of our library, of every mprun that a process is below.
[[nodiscard]] std::vector<Mapping> preload_libraries(std::string_view maps);

/// The address of an exported variable of that library; nullopt: there is none, or it cannot be read.
[[nodiscard]] std::optional<std::uint64_t> variable_of(const Mapping& library, std::string_view name,
                                                       ProcessMemory* memory);

}  // namespace mprun
