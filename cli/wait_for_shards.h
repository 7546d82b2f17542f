// What `mprun submit --wait` does until the batch job is over: one line of progress, hangs as they are found, and an
// offer to whoever presses Ctrl-C. Reads the shards' files; the batch system is asked now and then only.
#pragma once

#include <cstdint>
#include <string>

namespace mprun {

struct WaitedJob {
  std::string batch_job;  ///< its number
  std::string run_dir;
  std::uint64_t shards = 1;
  std::uint64_t tasks = 0;  ///< 0: nobody knows
  bool quiet = false;
};

/// 0: the job is over. Else the exit code of who stopped waiting: 128 + the signal.
[[nodiscard]] int wait_for_shards(const WaitedJob& job);

}  // namespace mprun
