// What mprun may see here: whether hangs can be found at all, and why a process may not be looked into. For people, so
// that a watch that sees nothing says so. Asked by the watch when it starts, by its reports and by `mprun inspect`.
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

/// Why `pid` may not be looked into, which was tried. `command`: what would have to be run with more rights.
[[nodiscard]] AccessProblem access_problem_of(ProcSource* proc, pid_t pid, const std::string& command);

}  // namespace mprun
