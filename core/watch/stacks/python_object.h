// The values of dictionaries and the attributes of objects of CPython, from the memory of a watched process. All it
// reads may be garbage.
#pragma once

#include <optional>
#include <vector>

#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// The values of a dict, at most `most` of them, in the order in which they came into it; 0 for what was removed. None
/// of a dict that shares its keys with others, as instances of a class do.
[[nodiscard]] std::vector<std::uint64_t> dictionary_values(std::uint64_t dictionary, std::size_t most,
                                                           const PythonLayout& layout, ProcessMemory* memory);

/// The address of the values of an object's attributes, in the order in which they were first set; nullopt: it has
/// none, or they are in a dictionary of its own.
[[nodiscard]] std::optional<std::uint64_t> attributes_at(std::uint64_t object, const PythonLayout& layout,
                                                         ProcessMemory* memory);

/// The values of the attributes of an instance of a class written in Python, at most `most` of them, from either place;
/// 0 for what is not set.
[[nodiscard]] std::vector<std::uint64_t> attribute_values(std::uint64_t object, std::size_t most,
                                                          const PythonLayout& layout, ProcessMemory* memory);

}  // namespace mprun
