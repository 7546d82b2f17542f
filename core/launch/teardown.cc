#include "launch/teardown.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "base/clock.h"
#include "procfs/process_tree.h"

namespace mprun {

void signal_descendants(int signal) {
  for (const pid_t pid : descendants(getpid())) kill(pid, signal);
}

int kill_descendants(double seconds) {
  const Nanos deadline = monotonic_now() + from_seconds(seconds);
  std::set<pid_t> killed;
  while (monotonic_now() < deadline) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto left = descendants(getpid());
    if (left.empty()) break;
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
      killed.insert(pid);
    }
    // Killed children wake us by becoming zombies; a grandchild first has to become our child.
    const timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return static_cast<int>(killed.size());
}

}  // namespace mprun
