// Which control groups we are in, and the small files of numbers that the kernel keeps there. Used by the readers of
// this module. Owns nothing.
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

/// The groups that may account for our use of what `controller` ("memory", "cpu") controls, version 2 in each place
/// where it may be mounted. `root`: where proc/ and sys/ are.
[[nodiscard]] std::vector<ControlGroup> control_groups(const std::string& root, std::string_view controller);

/// The names of the group and of its ancestors, innermost first; the last is empty: the hierarchy's root, which in a
/// container may be the group itself.
[[nodiscard]] std::vector<std::string> group_and_those_around(const ControlGroup& group);

/// "/a/b", and "/" for the root.
[[nodiscard]] std::string group_text(const std::string& name);

/// What can be read of a file.
[[nodiscard]] std::string file_contents(const std::string& path);

/// The number after the word `key` at the beginning of a line.
[[nodiscard]] std::optional<std::uint64_t> number_after(const std::string& text, std::string_view key);

}  // namespace mprun
