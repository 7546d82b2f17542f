// How much memory can still be used: by what the kernel has left, and by the limits of the control groups that this
// process is in. Called by cli/ before a job is resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>

namespace mprun {

struct MemoryRoom {
  std::uint64_t bytes = 0;  ///< the largest number where nothing says any
  std::string source;       ///< whose word that is, for people: "MemAvailable", "the limit of the control group /a"
};

/// The smallest of the numbers there are; swap counts for nothing. `root`: where proc/ and sys/ are.
[[nodiscard]] MemoryRoom memory_room(const std::string& root = "");

}  // namespace mprun
