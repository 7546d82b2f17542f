// A dead man's switch: has the kernel kill a process when this one ends, in whatever way. PR_SET_PDEATHSIG does so,
// too, but the process itself can read it there. Used for the program of `mprun -- COMMAND`.
#pragma once

#include <sys/types.h>

#include "os/fd.h"

namespace mprun {

/// `pid` gets SIGKILL when the descriptor is closed, as it is when its last owner dies. `pid` is a process that has not
/// been reaped; once it has been, closing does nothing, to whomever its number belongs by then.
[[nodiscard]] Result<Fd> kill_when_closed(pid_t pid);

}  // namespace mprun
