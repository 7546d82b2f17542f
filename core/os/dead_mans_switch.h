// A dead man's switch: the kernel kills a process when this one ends, however it ends. PR_SET_PDEATHSIG does the same,
// but the process itself can read that setting. Used for the program of `mprun -- COMMAND`.
#pragma once

#include "os/fd.h"

namespace mprun {

struct DeadMansSwitch {
  Fd ours;  ///< whoever has called die_with(theirs) gets SIGKILL when this is closed, as it is when its last owner dies
  Fd theirs;  ///< may be closed after that
};

[[nodiscard]] Result<DeadMansSwitch> make_dead_mans_switch();

/// Ties this process to a switch, by its `theirs`. Async-signal-safe. False with errno. Once the process has been
/// reaped, closing `ours` does nothing, whichever process has the number then.
bool die_with(int theirs);

}  // namespace mprun
