// Assumptions: what a judgement may leave out of account so that something can be said early of a hang that cannot be
// proved. A proof assumes nothing.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>

#include "base/clock.h"

namespace mprun {

struct Assumptions {
  bool handlers_release_nobody = false;  ///< handlers of signals, whosever they are
  /// From outside, to a rank of torch.distributed, a FIFO of the tree, or an IPC object that is used in the tree.
  bool nobody_connects = false;
  bool nobody_continues = false;       ///< what was stopped below another process of the tree
  Nanos no_limit_from = 0;             ///< a wait that ends by itself after so long or later is endless; 0: none is
  std::set<pid_t> polls;               ///< threads whose waits are endless, though they end again and again (polls.h)
  std::map<pid_t, std::string> spins;  ///< threads that run and only wait, with the call that does so (spins.h)
};

}  // namespace mprun
