// LostResultWatch: finds processes whose main thread waits for a result of a multiprocessing.Pool that will never come,
// while other threads go on, so that the tree never stands still and nothing is proved:
//  - the pool's thread for results has ended (a result could not be unpickled, or a callback raised), or waits in a
//    callback for another result of the pool;
//  - all workers die as soon as they start;
//  - a task was lost with its worker: the pool and all its workers have nothing to do.
// Looks at Python stacks. Three looks a second apart must agree, because a pool looks the same for a moment when it
// starts and ends. Lives in the watcher.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "base/clock.h"
#include "watch/stacks/python_stack.h"

namespace mprun {

class LostResultWatch {
 public:
  /// Whether it is so now; a look costs some milliseconds.
  using IsLost = std::function<bool(pid_t)>;

  explicit LostResultWatch(IsLost is_lost) : is_lost_(std::move(is_lost)) {}

  /// Such a process, not reported before; 0: none. `processes`: those that may be one now; what is known of others is
  /// forgotten.
  [[nodiscard]] pid_t look(const std::set<pid_t>& processes, Nanos now);

 private:
  struct Suspect {
    int agreed = 0;   ///< looks in a row
    Nanos pause = 0;  ///< until the next one, if nothing was found
    Nanos next_look = 0;
    bool reported = false;
  };

  IsLost is_lost_;
  std::map<pid_t, Suspect> suspects_;
};

using ReadStacks = std::function<PythonStacks(pid_t)>;

/// The main thread of the process waits for its pool.
[[nodiscard]] bool waits_for_pool(const ReadStacks& read_stacks, pid_t pid);
/// The same, and no thread takes the pool's results.
[[nodiscard]] bool has_lost_helper(const ReadStacks& read_stacks, pid_t pid);
/// The main thread of the process waits for its pool, which hands out and receives nothing, and all workers among the
/// processes `below` it wait for a task. So the pool has lost one, if a worker has died.
[[nodiscard]] bool has_lost_task(const ReadStacks& read_stacks, pid_t pid, const std::vector<pid_t>& below);

}  // namespace mprun
