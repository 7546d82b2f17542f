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

constexpr Nanos kTrackerPatience = 500 * kNanosPerMilli;
constexpr Nanos kManagerPatience = 3 * kNanosPerSecond;

/// How long a process may go on when all others are ended; 0 for most. Some know the named shared memory and semaphores
/// of a program, remove them when the last process that could tell them more has ended, and end then: the resource
/// trackers of multiprocessing and of joblib's loky at once, the shared memory manager of torch two seconds later. One
/// whose command line is empty may be one: it is between exec and its first instruction, or ending anyway.
Nanos patience_with(pid_t pid) {
  const std::string arguments = command_line(pid);
  if (arguments.empty() || arguments.find(".resource_tracker import main") != std::string::npos) {
    return kTrackerPatience;
  }
  const std::string program(arguments, 0, arguments.find('\0'));
  return program.substr(program.rfind('/') + 1) == "torch_shm_manager" ? kManagerPatience : 0;
}

void kill_group(pid_t leader) {
  bool spared = false;
  std::vector<pid_t> others;
  for (const pid_t pid : descendants(getpid())) {
    if (getpgid(pid) != leader) continue;
    if (pid != leader && patience_with(pid) > 0) {
      spared = true;
    } else {
      others.push_back(pid);
    }
  }
  if (!spared) kill(-leader, SIGKILL);  // nobody who forks meanwhile escapes
  for (const pid_t pid : others) kill(pid, SIGKILL);
}

}  // namespace

void signal_group(pid_t leader, int signal) {
  if (getpgid(leader) != leader) {  // not yet its leader, or ended
    kill(leader, signal);
  } else if (signal == SIGKILL) {
    kill_group(leader);
  } else {
    kill(-leader, signal);
  }
}

void kill_leftovers(pid_t leader) {
  const std::vector<pid_t> orphans = children();  // what the leader had started is our child by now
  const bool has_tracker = std::any_of(orphans.begin(), orphans.end(), [leader](pid_t pid) {
    return pid != leader && getpgid(pid) == leader && patience_with(pid) > 0;
  });
  if (has_tracker) {
    kill_group(leader);
  } else {
    kill(-leader, SIGKILL);
  }
}

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
  explicit Killer(double seconds) : began_(monotonic_now()), seconds_(from_seconds(seconds)) {}

  int kill_all() {
    while (reap() && monotonic_now() < deadline()) {
      kill_each(descendants(getpid()));
      kill_restless();
      // Killed children wake us by becoming zombies; a grandchild first has to become our child.
      const timespec pause{0, 500'000};
      nanosleep(&pause, nullptr);
    }
    return static_cast<int>(killed_.size());
  }

 private:
  [[nodiscard]] Nanos deadline() const { return began_ + longest_patience_ + seconds_; }

  void kill_each(const std::vector<pid_t>& processes) {
    spared_.clear();
    for (const pid_t pid : processes) {
      const Nanos patience = killed_.count(pid) != 0 ? 0 : patience_with(pid);
      if (monotonic_now() < began_ + patience) {
        spared_.insert(pid);
        longest_patience_ = std::max(longest_patience_, patience);
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
    } while (reap() && monotonic_now() < std::min(deadline(), last_found + kRestless));
  }

  Nanos began_, seconds_, longest_patience_ = 0;
  std::set<pid_t> killed_, spared_;
};

}  // namespace

int kill_descendants(double seconds) { return Killer(seconds).kill_all(); }

}  // namespace mprun
