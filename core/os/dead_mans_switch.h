// A dead man's switch: the kernel kills a process when this one ends, however it ends. PR_SET_PDEATHSIG does the same,
// but the process itself can read that setting. Used for the program of `mprun -- COMMAND`.
#pragma once

#include <sys/types.h>

#include "os/fd.h"

namespace mprun {

/// `pid` gets SIGKILL when the descriptor is closed, as it is when its last owner dies. `pid` must not have been reaped
/// yet. Once it has been, closing does nothing, whichever process has the number then.
[[nodiscard]] Result<Fd> kill_when_closed(pid_t pid);

}  // namespace mprun
