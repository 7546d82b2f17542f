// How much memory can still be used, by what the kernel has left and by the limits of the control groups of this
// process; and how many reserved huge pages. Called by cli/ before a job is resolved; owns nothing.
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

/// The kernel's pool of huge pages that are reserved for hugetlbfs, of the default size.
struct HugePagePool {
  std::uint64_t page_bytes = 0;  ///< 0: this kernel has no such pool
  std::uint64_t free = 0;        ///< pages that nobody has a claim to, with those that the kernel may add to the pool
};

/// The pool of the whole machine: limits of control groups (hugetlb) do not count. `root` as above.
[[nodiscard]] HugePagePool huge_page_pool(const std::string& root = "");

}  // namespace mprun
