// How often the kernel has killed processes because memory ran out: those of our control groups, and all of the
// machine. Read by the supervisor when a job starts and when a worker is killed by a signal that mprun has not sent.
// Owns nothing.
#pragma once

#include <cstdint>
#include <string>

namespace mprun {

struct OomKills {
  std::uint64_t group = 0;    ///< of the control group that this process is in, and of those below it
  std::uint64_t machine = 0;  ///< of all, since it booted
};

/// 0 where there is no count. `root`: where proc/ and sys/ are.
[[nodiscard]] OomKills oom_kills(const std::string& root = "");

}  // namespace mprun
