#include "launch/teardown.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "os/process.h"
#include "os/uninterrupted.h"
#include "procfs/process_tree.h"

namespace mprun {
namespace {

/// Helper processes of Python programs, which end by themselves when the last process that could ask them for something
/// has ended. The trackers know all named shared memory of a program, and then remove what is left of it.
enum class Helper {
  kNone,
  kTracker,       ///< of multiprocessing, or of joblib's loky
  kForkserver,    ///< of multiprocessing
  kTorchTracker,  ///< of torch's sharing strategy file_system: first waits two seconds for a new client
};

/// One whose command line is empty may be a tracker: it is between exec and its first instruction, or ending anyway.
/// A process that a helper has forked looks like it and is none: the workers of a forkserver.
Helper helper_kind(pid_t pid) {
  const std::string arguments = command_line(pid);
  if (arguments.empty()) return Helper::kTracker;
  if (arguments.rfind("torch_shm_manager", 0) == 0) return Helper::kTorchTracker;
  const bool forkserver = arguments.find("multiprocessing.forkserver import main") != std::string::npos;
  const bool tracker = arguments.find(".resource_tracker import main") != std::string::npos;
  if (!forkserver && !tracker) return Helper::kNone;
  const auto stat = read_stat(pid);
  if (stat && stat->forked) return Helper::kNone;
  return tracker ? Helper::kTracker : Helper::kForkserver;
}

/// The seconds that a helper may take to end once no process is left that could ask it for something. A second is
/// enough even for a Python with torch, but no time is enough on a machine that is far overloaded.
double patience_with(Helper kind) {
  switch (kind) {
    case Helper::kNone:
      return 0;
    case Helper::kForkserver:
      return 2;
    case Helper::kTracker:
      return 10;
    case Helper::kTorchTracker:
      return 12;
  }
  return 0;
}

bool is_tracker(pid_t pid) {
  const Helper kind = helper_kind(pid);
  return kind == Helper::kTracker || kind == Helper::kTorchTracker;
}

void kill_group(const ProcessRef& leader) {
  bool spared = false;
  std::vector<ProcessRef> others;
  for (Descendant& one : hold_descendants()) {
    if (one.group != leader.pid()) continue;
    if (one.process.pid() != leader.pid() && is_tracker(one.process.pid())) {
      spared = true;
    } else {
      others.push_back(std::move(one.process));
    }
  }
  if (!spared) leader.signal_group(SIGKILL);  // no process that forks meanwhile escapes
  for (const ProcessRef& process : others) process.signal(SIGKILL);
}

/// The orphans of a process in an inner PID namespace become children of that namespace's first process, not ours.
bool has_inner_namespace(pid_t pid) {
  const auto proc = live_proc();
  const auto text = proc->read(std::to_string(pid) + "/status");
  const auto status = text ? parse_status(*text) : std::nullopt;
  return status && status->namespaces > 1;
}

}  // namespace

void signal_group(const ProcessRef& leader, int signal) {
  if (signal == SIGKILL) {
    kill_group(leader);
  } else {
    leader.signal_group(signal);
  }
}

void kill_leftovers(const ProcessRef& leader) {
  const std::vector<pid_t> orphans = children();  // what the leader had started is our child by now
  const bool has_tracker = std::any_of(orphans.begin(), orphans.end(), [&leader](pid_t pid) {
    return pid != leader.pid() && getpgid(pid) == leader.pid() && is_tracker(pid);
  });
  if (has_tracker || has_inner_namespace(leader.pid())) {
    kill_group(leader);
  } else {
    leader.signal_group(SIGKILL);
  }
}

void signal_descendants(int signal) {
  for (const Descendant& one : hold_descendants()) one.process.signal(signal);
}

namespace {

/// Whether a child is only waiting to be reaped.
bool is_to_be_reaped(pid_t child) {
  siginfo_t info{};
  const auto look = [&] { return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT); };
  return uninterrupted(look) == 0 && info.si_pid == child;
}

constexpr Nanos kRestless = 5 * kNanosPerMilli;
constexpr double kLongestPatience = 30;  // while others are started all the time

class Killer {
 public:
  explicit Killer(double seconds)
      : begun_(monotonic_now()), last_kill_(begun_), deadline_(begun_ + from_seconds(seconds)) {}

  int kill_all() {
    while (reap() && monotonic_now() < deadline_) {
      const bool all_spared = !kill_each(hold_descendants());
      kill_restless();
      // Killed children wake us by becoming zombies; a grandchild first has to become our child.
      const timespec pause{0, all_spared ? 5'000'000 : 500'000};
      nanosleep(&pause, nullptr);
    }
    return reaped_ + static_cast<int>(killed_.size());
  }

 private:
  /// Reaps what has ended; false: no child is left, and so no process below us. A reaped number may soon belong to
  /// another process.
  bool reap() {
    pid_t pid = 0;
    while ((pid = uninterrupted([] { return waitpid(-1, nullptr, WNOHANG); })) > 0) {
      if (killed_.erase(pid) > 0) {
        ++reaped_;
      } else {
        last_restless_ = monotonic_now();
      }
    }
    return pid == 0 || errno != ECHILD;
  }

  /// Whether there was a process to kill.
  bool kill_each(const std::vector<Descendant>& processes) {
    bool found = false;
    for (const Descendant& one : processes) {
      const pid_t pid = one.process.pid();
      if (killed_.count(pid) == 0 && spares(pid)) continue;
      spared_.erase(pid);
      one.process.signal(SIGKILL);
      if (killed_.insert(pid).second) last_kill_ = monotonic_now();
      found = true;
    }
    return found;
  }

  bool spares(pid_t pid) {
    const Helper kind = helper_kind(pid);
    if (kind == Helper::kNone) return false;
    Helper& known = spared_.try_emplace(pid, kind).first->second;
    if (kind != Helper::kTracker) known = kind;  // else it may be ending without a command line: its kind stays
    const Nanos late =
        std::min(last_kill_ + from_seconds(patience_with(known)), begun_ + from_seconds(kLongestPatience));
    deadline_ = std::max(deadline_, late + kNanosPerSecond);  // one that is late still has to be killed
    return monotonic_now() < late;
  }

  // A process that forks and exits all the time is in no listing of /proc, which takes long on a crowded machine. But
  // each of its children becomes ours: it is killed, or reaped if it exits first, and then the next one is there.
  void kill_restless() {
    last_restless_ = 0;
    reap();
    do {
      for (const pid_t pid : children()) {
        if (spared_.count(pid) != 0 || is_to_be_reaped(pid)) continue;
        ProcessRef::of_child(pid).signal(SIGKILL);
        if (killed_.insert(pid).second) last_restless_ = monotonic_now();
      }
    } while (reap() && monotonic_now() < std::min(deadline_, last_restless_ + kRestless));
  }

  Nanos begun_, last_kill_, deadline_;
  Nanos last_restless_ = 0;  ///< when a child was found that no listing of /proc had shown
  int reaped_ = 0;           ///< of those that were killed
  std::set<pid_t> killed_;   ///< and are not reaped yet
  std::map<pid_t, Helper> spared_;
};

}  // namespace

bool kill_tree(const ProcessRef& root) {
  raise_open_files();
  std::map<pid_t, ProcessRef> stopped;
  bool all = true;
  for (bool grew = true; grew;) {
    grew = false;
    for (ProcessRef& process : hold_tree(root)) {
      if (stopped.count(process.pid()) != 0) continue;
      if (process.signal(SIGSTOP)) {
        grew = true;
      } else {
        all = all && process.has_ended();
      }
      stopped.emplace(process.pid(), std::move(process));
    }
  }
  for (const auto& [pid, process] : stopped) process.signal(SIGKILL);
  return all;
}

int kill_descendants(double seconds) {
  raise_open_files();  // each descendant is held by a descriptor
  return Killer(seconds).kill_all();
}

}  // namespace mprun
