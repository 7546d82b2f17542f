// Starting and ending processes: spawn with everything prepared before the fork, signals, reaping.
// Called by the supervisor and its launchers, which make a ProcessRef (core/procfs) of each child before it can be
// reaped.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/inheritance.h"

namespace mprun {

/// What a new process gets. Every string is copied before the fork.
struct SpawnPlan {
  std::string file;  ///< what exec runs: no PATH search happens here; empty: argv[0]
  std::vector<std::string> argv;
  std::vector<std::string> env;          ///< "NAME=value"
  std::string directory;                 ///< working directory; empty: ours
  std::vector<std::pair<int, int>> fds;  ///< (ours, number in the child); ours -1: it is closed there
  bool close_others = true;              ///< also those mprun was started with, beyond the last of `fds`
  bool new_session = true;               ///< setsid: own process group, no terminal
  std::optional<pid_t> process_group;    ///< joined instead of a new session
  std::optional<rlimit> open_files;      ///< RLIMIT_NOFILE to restore
  int dies_with = -1;                    ///< DeadMansSwitch::theirs, to which it is tied if that can be; -1: none
  std::vector<int> cpus;                 ///< the processors that it may run on; empty: ours
  std::vector<int> nodes;                ///< the memory nodes that its memory comes from; empty: any
  Inheritance inheritance;
};

/// Where a spawn failed, and how.
struct SpawnFailure {
  const char* stage = "";  ///< "pipe", "fork", "working directory", "exec", ...
  int error_number = 0;
};

/// Starts a process, which by default dies with this thread (PR_SET_PDEATHSIG). vfork-fast. On failure returns
/// -1 and fills `failure`; nothing is left behind.
[[nodiscard]] pid_t spawn_process(const SpawnPlan& plan, SpawnFailure* failure);

/// The file that exec would run for `name`, searched in `path` (a PATH value) when it has no slash. Unlike in a shell,
/// an empty entry of `path` is no directory. Empty: not found; `*not_executable` then says whether there was a file
/// without permission.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& path, const std::string& directory,
                                       bool* not_executable);

/// Makes orphaned descendants ours to reap (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

/// getrlimit(2) of RLIMIT_...; no limits where it fails.
[[nodiscard]] rlimit limits_of(int resource);

/// Raises the soft limit of open files to the hard one and returns the limits as they were; nullopt: they cannot be
/// read, and are left alone.
std::optional<rlimit> raise_open_files();

}  // namespace mprun
