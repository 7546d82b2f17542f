// How many CPUs this process can use: those it may run on, but no more than the quotas of its control groups allow.
// Called by cli/ before a job is resolved; owns nothing.
#pragma once

#include <string>

namespace mprun {

struct CpuRoom {
  int cpus = 1;        ///< at least one
  std::string source;  ///< what limits it, human-readable: "the CPU affinity", "the CPU quota of the control group /a"
};

/// The smaller of the two; a quota of one and a half counts as two. `root`: where proc/ and sys/ are.
[[nodiscard]] CpuRoom cpu_room(const std::string& root = "");

}  // namespace mprun
