// The values of dictionaries and the attributes of objects of CPython, from the memory of a watched process. All it
// reads may be garbage.
#pragma once

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// As std::bit_cast, which the libstdc++ of the portable build (10) lacks.
[[nodiscard]] inline double double_of_bits(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
[[nodiscard]] inline std::uint64_t bits_of_double(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The values of a dict, at most `most` of them, in the order in which they came into it; 0 for what was removed. None
/// of a dict that shares its keys with others, as instances of a class do.
[[nodiscard]] std::vector<std::uint64_t> dictionary_values(std::uint64_t dictionary, std::size_t most,
                                                           const PythonLayout& layout, ProcessMemory* memory);

/// The address of the values of an object's attributes, in the order in which they were first set; nullopt: it has
/// none, or they are in a dictionary of its own.
[[nodiscard]] std::optional<std::uint64_t> attributes_at(std::uint64_t object, const PythonLayout& layout,
                                                         ProcessMemory* memory);

/// The dictionary of an object's own in which its attributes are, if they are not there; 0: it has none.
[[nodiscard]] std::uint64_t attribute_dictionary_of(std::uint64_t object, const PythonLayout& layout,
                                                    ProcessMemory* memory);

/// The values of the attributes of an instance of a class written in Python, at most `most` of them, from either place;
/// 0 for what is not set.
[[nodiscard]] std::vector<std::uint64_t> attribute_values(std::uint64_t object, std::size_t most,
                                                          const PythonLayout& layout, ProcessMemory* memory);

/// Reads objects of a few types. What is not of that type, or cannot be read, is none.
class PythonObjects {
 public:
  /// Both must outlive it.
  PythonObjects(const PythonLayout& layout, ProcessMemory* memory) : layout_(layout), memory_(memory) {}

  /// `type`: its name, as tp_name has it ("list", "collections.deque"), up to 31 bytes.
  [[nodiscard]] bool is_a(std::uint64_t object, std::string_view type) const;
  /// The attributes that attribute_values() finds, at most 64.
  [[nodiscard]] std::vector<std::uint64_t> attributes_of(std::uint64_t object) const;
  /// The items of a list; nullopt: more than 4096, or it cannot be read.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> items_of(std::uint64_t list) const;
  /// The value of an int between 1 and 2**30 - 1.
  [[nodiscard]] std::optional<std::uint32_t> number_of(std::uint64_t object) const;
  /// The value of a bool; true if it cannot be read.
  [[nodiscard]] bool is_true(std::uint64_t object) const;

 private:
  [[nodiscard]] std::uint64_t word(std::uint64_t address) const;

  const PythonLayout& layout_;
  ProcessMemory* memory_;
};

}  // namespace mprun
