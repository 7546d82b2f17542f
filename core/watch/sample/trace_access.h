// What mprun may see here: whether hangs can be found at all, and why a process may not be inspected. Human-readable,
// so that a watch that sees nothing says so. Called by the watch at its start, by its reports and by `mprun inspect`.
#pragma once

#include "procfs/proc_source.h"

namespace mprun {

/// What is in the way, and what helps.
struct AccessProblem {
  std::string why;        ///< "it is another user's"
  std::string cure;       ///< "run mprun as that user, or as root"
  bool is_total = false;  ///< nothing at all can be seen
};

/// Why no hang can be found; nullopt: nothing is in the way.
[[nodiscard]] std::optional<AccessProblem> access_problem_here(ProcSource* proc);

/// Why `pid` may not be inspected; called after an attempt has failed. `command`: what to run with more rights.
[[nodiscard]] AccessProblem access_problem_of(ProcSource* proc, pid_t pid, const std::string& command);

}  // namespace mprun
