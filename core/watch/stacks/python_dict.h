// The values of a dictionary of CPython, from the memory of a watched process. All it reads may be garbage.
#pragma once

#include <vector>

#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// The values of a dict, at most `most` of them, in the order in which they came into it; 0 for what was removed. None
/// of a dict that shares its keys with others, as instances of a class do.
[[nodiscard]] std::vector<std::uint64_t> dictionary_values(std::uint64_t dictionary, std::size_t most,
                                                           const PythonLayout& layout, ProcessMemory* memory);

}  // namespace mprun
