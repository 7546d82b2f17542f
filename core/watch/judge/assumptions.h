// Assumptions: what a judgement may ignore, so that mprun can report early a hang that it cannot prove. A proof assumes
// nothing.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>

#include "base/clock.h"

namespace mprun {

struct OwnPoll {
  std::string awaited;     ///< what the thread looks for: "a future"
  bool is_shared = false;  ///< other processes of the tree may bring it about, not only its own
  bool is_flag = false;    ///< a handler of a signal may bring it about, in a program that idles until then
  bool operator==(const OwnPoll&) const = default;
};

/// A thread that sleeps or waits with a limit, and in between lets no other thread go on (python_beat.h).
struct Beat {
  bool changes_variables = false;  ///< that another thread may look at
  bool prints_at_times = false;    ///< to its standard output or error
  bool operator==(const Beat&) const = default;
};

struct Assumptions {
  bool handlers_release_no_thread = false;  ///< no signal handler, nor a function that CUDA calls, lets a thread go on
  /// No process outside connects to a rank of torch.distributed, or uses a FIFO or an IPC object of the tree.
  bool no_outside_peers = false;
  bool stopped_stay_stopped = false;  ///< no process continues what was stopped below another one of the tree
  Nanos no_limit_from = 0;            ///< a wait that ends by itself after this time or later is endless; 0: none is
  std::set<pid_t> polls;  ///< threads whose waits count as endless, although they end again and again (polls.h)
  std::map<pid_t, pid_t> child_polls;  ///< threads that sleep and look whether that child has ended (polls.h)
  std::map<pid_t, OwnPoll> own_polls;  ///< threads that sleep or wait between looks at objects in memory (polls.h)
  std::map<pid_t, Beat> beats;         ///< threads that only beat (polls.h)
  std::set<pid_t> pool_keepers;        ///< threads that only replace ended workers of a multiprocessing.Pool
  std::map<pid_t, std::string> spins;  ///< threads that run but only wait, with the call that waits (spins.h)
};

}  // namespace mprun
