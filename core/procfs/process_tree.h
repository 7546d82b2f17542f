// Who descends from whom, read from /proc. Used when a job is stopped, continued or torn down.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace mprun {

/// Parent and state of one process, from a line of /proc/PID/stat.
struct ProcessStat {
  pid_t parent = 0;
  char state = '?';  ///< proc(5): R, S, D, Z, T, ...
};

/// Parses the text of /proc/PID/stat; false if it is none. The command name may hold anything.
[[nodiscard]] bool parse_process_stat(std::string_view text, ProcessStat* stat);

/// All living descendants of `ancestor` (zombies left out), parents before children.
[[nodiscard]] std::vector<pid_t> descendants(pid_t ancestor, const std::string& proc_root = "/proc");

/// The arguments of a process, a NUL after each; empty if it has ended or may not be looked at.
[[nodiscard]] std::string command_line(pid_t pid, const std::string& proc_root = "/proc");

}  // namespace mprun
