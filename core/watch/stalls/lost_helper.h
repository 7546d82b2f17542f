// LostHelperWatch: finds a multiprocessing.Pool whose thread for results has ended (a result could not be unpickled, or
// a callback raised). Its other threads go on, and one of them spins, so the tree never stands still; but a thread that
// waits for a result waits for ever. Looks at the Python stacks of processes whose main thread rests while others run.
// Three looks a second apart must agree, because a pool looks the same for a moment when it starts and ends. Lives in
// the watcher.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "base/clock.h"
#include "watch/stacks/python_stack.h"

namespace mprun {

class LostHelperWatch {
 public:
  using ReadStacks = std::function<PythonStacks(pid_t)>;

  /// `proc` must outlive it. `read_stacks`: read_python_stacks() by default; tests pass their own.
  explicit LostHelperWatch(ProcSource* proc, ReadStacks read_stacks = {});

  /// Such a process, not reported before; 0: none. `processes`: those whose main threads rest while others run.
  [[nodiscard]] pid_t look(const std::set<pid_t>& processes, Nanos now);

 private:
  struct Suspect {
    int agreed = 0;   ///< looks in a row
    Nanos pause = 0;  ///< until the next one, if nothing was found
    Nanos next_look = 0;
    bool reported = false;
  };

  ReadStacks read_stacks_;
  std::map<pid_t, Suspect> suspects_;
};

}  // namespace mprun
