// How much memory can still be used, by what the kernel has left and by the limits of the control groups of this
// process. Called by cli/ before a job is resolved; owns nothing.
#pragma once

#include <cstdint>
#include <string>

namespace mprun {

struct MemoryRoom {
  std::uint64_t bytes = 0;  ///< the largest number if there is no limit
  std::string source;       ///< what limits it, human-readable: "MemAvailable", "the limit of the control group /a"
};

/// The smallest of these numbers; swap does not count. `root`: where proc/ and sys/ are.
[[nodiscard]] MemoryRoom memory_room(const std::string& root = "");

}  // namespace mprun
