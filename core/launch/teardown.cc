#include "launch/teardown.h"

#include <sys/wait.h>
#include <unistd.h>

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

int kill_descendants(double seconds) {
  const Nanos start = monotonic_now();
  const Nanos deadline = start + from_seconds(seconds);
  const Nanos trackers_deadline = start + from_seconds(seconds / 4);
  std::set<pid_t> killed;
  while (monotonic_now() < deadline) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto left = descendants(getpid());
    if (left.empty()) break;
    for (const pid_t pid : left) {
      if (monotonic_now() < trackers_deadline && may_be_resource_tracker(pid)) continue;
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
