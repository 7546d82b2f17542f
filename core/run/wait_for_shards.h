// What `mprun submit --wait` does until the batch job is over: prints one line of progress and hangs as they are found,
// and asks what to do after Ctrl-C. Reads the shards' files; queries the batch system only now and then.
#pragma once

#include <cstdint>
#include <string>

namespace mprun {

struct WaitedJob {
  std::string batch_job;  ///< its number
  std::string run_dir;
  std::uint64_t shards = 1;
  std::uint64_t tasks = 0;  ///< 0: unknown
  bool quiet = false;
};

/// 0: the job is over. Else the exit code if the user stopped waiting: 128 + the signal.
[[nodiscard]] int wait_for_shards(const WaitedJob& job);

}  // namespace mprun
