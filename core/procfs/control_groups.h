// Which control groups account for our memory, and the small files of numbers that the kernel keeps there. Used by the
// readers of this module. Owns nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mprun {

struct ControlGroup {
  std::string folder;    ///< where its hierarchy is mounted
  std::string name;      ///< "/a/b"; of the root: empty
  bool unified = false;  ///< of version 2
};

/// Those that may account for our memory, version 2 in each place where it may be mounted. `root`: where proc/ and sys/
/// are.
[[nodiscard]] std::vector<ControlGroup> memory_groups(const std::string& root);

/// What can be read of a file.
[[nodiscard]] std::string file_contents(const std::string& path);

/// The number behind the word `key` at the beginning of a line.
[[nodiscard]] std::optional<std::uint64_t> number_behind(const std::string& text, std::string_view key);

}  // namespace mprun
