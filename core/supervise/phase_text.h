// What a job waits for while no task runs, as text: a pure function of what the supervisor knows, called for every
// pulse, so that the user sees why nothing happens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mprun {

/// The state of the job.
struct PhaseFacts {
  bool stopping = false;   ///< no more tasks are handed out
  bool done = false;       ///< no task is left
  bool was_ready = false;  ///< tasks could have been run already
  int busy = 0;            ///< workers that have a task
  int processes = 0;       ///< of workers
  int starting = 0;        ///< workers that are not ready
  int first_starting = 0;  ///< one of them
  bool host = false;       ///< a host runs
  std::string_view stage;  ///< what the host, or that worker, reports that it does: "importing job.py"
  bool needs_input = false, stdin_input = false;
  std::uint64_t waiting_tasks = 0;  ///< read, and handed to no worker
  bool needs_shared = false;        ///< other mpruns have all tasks that are left
  std::string waits_for = {};       ///< which: "blocks of shard 3"; empty: not known yet
  std::string other_shards = {};    ///< those whose ranks ours wait for, to start or to end together; else empty
};

struct PhaseText {
  const char* phase = "running";  ///< "starting", "running", "finishing", "stopping"
  std::string doing;              ///< "importing job.py", "waiting for worker 3 to start"; empty while tasks run
};

[[nodiscard]] PhaseText phase_text(const PhaseFacts& facts);

}  // namespace mprun
