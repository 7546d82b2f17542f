#include "launch/teardown.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <string>

#include "base/clock.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

/// True for the helper process of multiprocessing, or of joblib's loky, that knows all named shared memory and
/// semaphores of a program, and ends when the last process that could tell it more has ended. One whose command line
/// is empty may be one: it is between exec and its first instruction, or ending anyway.
bool may_be_resource_tracker(pid_t pid) {
  const std::string arguments = command_line(pid);
  return arguments.empty() || arguments.find(".resource_tracker import main") != std::string::npos;
}

}  // namespace

void signal_descendants(int signal) {
  for (const pid_t pid : descendants(getpid())) kill(pid, signal);
}

namespace {

/// Reaps what has ended; false: there is no child left, and so nobody below us.
bool reap() {
  pid_t reaped = 0;
  while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  return reaped == 0 || errno != ECHILD;
}

constexpr Nanos kRestless = 5 * kNanosPerMilli;

class Killer {
 public:
  explicit Killer(double seconds)
      : deadline_(monotonic_now() + from_seconds(seconds)),
        trackers_deadline_(monotonic_now() + from_seconds(seconds / 4)) {}

  int kill_all() {
    while (reap() && monotonic_now() < deadline_) {
      kill_each(descendants(getpid()));
      kill_restless();
      // Killed children wake us by becoming zombies; a grandchild first has to become our child.
      const timespec pause{0, 500'000};
      nanosleep(&pause, nullptr);
    }
    return static_cast<int>(killed_.size());
  }

 private:
  void kill_each(const std::vector<pid_t>& processes) {
    const bool spares = monotonic_now() < trackers_deadline_;
    if (!spares) spared_.clear();
    for (const pid_t pid : processes) {
      if (spares && killed_.count(pid) == 0 && may_be_resource_tracker(pid)) {
        spared_.insert(pid);
        continue;
      }
      kill(pid, SIGKILL);
      killed_.insert(pid);
    }
  }

  // One that forks and exits all the time is found by no look at all of /proc. But it becomes our child each time.
  void kill_restless() {
    Nanos last_found = 0;
    do {
      for (const pid_t pid : children()) {
        if (spared_.count(pid) != 0) continue;
        kill(pid, SIGKILL);
        if (killed_.insert(pid).second) last_found = monotonic_now();
      }
    } while (reap() && monotonic_now() < std::min(deadline_, last_found + kRestless));
  }

  Nanos deadline_, trackers_deadline_;
  std::set<pid_t> killed_, spared_;
};

}  // namespace

int kill_descendants(double seconds) { return Killer(seconds).kill_all(); }

}  // namespace mprun
