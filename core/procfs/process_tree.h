// Who descends from whom, read from /proc. Used when a job is stopped, continued or torn down.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mprun {

/// All living descendants of `ancestor` (zombies left out), parents before children.
[[nodiscard]] std::vector<pid_t> descendants(pid_t ancestor, const std::string& proc_root = "/proc");

/// The children of the calling thread, ended ones too, in one short read; of very many the first. Empty where /proc
/// does not tell.
[[nodiscard]] std::vector<pid_t> children();

/// The arguments of a process, a NUL after each; empty if it has ended or may not be looked at.
[[nodiscard]] std::string command_line(pid_t pid, const std::string& proc_root = "/proc");

}  // namespace mprun
