// Reads strings and code objects of CPython from the memory of a watched process: what a frame executes, and at which
// line. Used by python_stack.cc. All it reads may be garbage.
#pragma once

#include <array>
#include <map>
#include <string_view>

#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// The type objects of the interpreter, used to check that a pointer leads to what it should.
struct PythonTypes {
  std::uint64_t code = 0, unicode = 0, bytes = 0;
  std::uint64_t floating = 0;  ///< 0: not known
  /// Asked for until 3.10 alone (python_functions.h): functions; staticmethod, classmethod and property.
  std::uint64_t function = 0;
  std::array<std::uint64_t, 3> wrappers = {};
};

struct PythonCode {
  std::string file, function;  ///< UTF-8; `function` is the qualified name
  std::string lines;           ///< co_linetable
  int first_line = 0;
  std::uint32_t local_count = 0, argument_count = 0;  ///< arguments: positional ones
  std::uint64_t first_traceable = 0;                  ///< address of the first instruction that is the function's own
  std::uint64_t begin = 0, end = 0;                   ///< of its instructions
  std::uint64_t copies = 0;                           ///< address of the list of copies of them; 0: there is none
};

/// The line of the instruction at `offset` (bytes) of a code object; 0: it belongs to none. `table` is its co_linetable
/// (Objects/locations.md of CPython 3.11 and later; Objects/lnotab_notes.txt before), or its co_lnotab.
[[nodiscard]] int python_line(std::string_view table, int first_line, std::uint64_t offset,
                              PythonLineFormat format = PythonLineFormat::kLocations);

/// True for the standard library and installed packages.
[[nodiscard]] bool is_library_file(std::string_view file);

class PythonCodeReader {
 public:
  PythonCodeReader(ProcessMemory* memory, const PythonLayout& layout, const PythonTypes& types)
      : memory_(memory), layout_(layout), types_(types) {}

  /// The code object at `address`; nullptr if there is none. It lives as long as this reader.
  [[nodiscard]] const PythonCode* read(std::uint64_t address);
  /// A str as UTF-8, at most `most` characters of it and then "..."; what has no UTF-8 becomes U+FFFD.
  [[nodiscard]] std::optional<std::string> text(std::uint64_t address, std::size_t most);

 private:
  [[nodiscard]] std::optional<PythonCode> decode(std::uint64_t address);
  [[nodiscard]] std::optional<std::string> bytes(std::uint64_t address);
  [[nodiscard]] bool is_string_type(std::uint64_t type);

  ProcessMemory* memory_;
  const PythonLayout& layout_;
  PythonTypes types_;
  std::map<std::uint64_t, std::optional<PythonCode>> known_;  ///< threads of a pool share most of theirs
};

}  // namespace mprun
