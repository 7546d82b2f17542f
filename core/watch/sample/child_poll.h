// Reads from the preload library of a process whether it has asked, without waiting, if a child of it has ended:
// waitpid() with WNOHANG, as Python's Popen.poll() and Process.is_alive() call it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "procfs/proc_source.h"

namespace mprun {

struct ChildPoll {
  pid_t child = 0;          ///< the one asked about last, which had not ended; 0: none
  std::uint64_t count = 0;  ///< how often that was so, of any child
};

/// All 0 if the process does not have the library, or it cannot be read.
[[nodiscard]] ChildPoll last_child_poll(ProcSource* proc, pid_t pid);

}  // namespace mprun
