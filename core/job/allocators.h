// The allocators that workers can have in place of the C library's. Used by job and doctor.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mprun {

struct Allocator {
  std::string name;                    ///< in "allocator"
  std::string package;                 ///< of Debian
  std::vector<std::string> libraries;  ///< for the dynamic linker, the best first
};

[[nodiscard]] const std::vector<Allocator>& allocators();

/// The names of all their libraries.
[[nodiscard]] std::vector<std::string> allocator_libraries();

/// The path of an allocator's library among those that were found; empty: it is not there.
[[nodiscard]] std::string path_of(const Allocator& allocator, const std::map<std::string, std::string>& found);

}  // namespace mprun
