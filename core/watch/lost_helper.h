// LostHelperWatch: a multiprocessing.Pool whose thread for results has ended (a result could not be unpickled, or a
// callback raised). Its other threads go on, and one of them spins, so that the tree never stands still; but whoever
// waits for a result waits for ever. Found in the Python stacks of processes whose main thread rests while others run;
// three looks a second apart must agree, as the pool is like that for a moment when it starts and ends. Lives in the
// watcher.
#pragma once

#include <map>
#include <set>

#include "base/clock.h"
#include "procfs/proc_source.h"

namespace mprun {

class LostHelperWatch {
 public:
  explicit LostHelperWatch(ProcSource* proc) : proc_(proc) {}

  /// One of `processes`, whose main threads rest while others of them run, that is so and was not told before; 0: none.
  [[nodiscard]] pid_t look(const std::set<pid_t>& processes, Nanos now);

 private:
  struct Suspect {
    int agreed = 0;   ///< looks in a row
    Nanos pause = 0;  ///< until the next one, where nothing was found
    Nanos next_look = 0;
    bool told = false;
  };

  ProcSource* proc_;
  std::map<pid_t, Suspect> suspects_;
};

}  // namespace mprun
