// Timer signals (alarm(2), setitimer(2)), which /proc does not show. The preload library records in the memory of its
// own process whether one was requested. This record cannot get lost, no process waits until mprun receives it, and it
// belongs to the same instant as everything else that is read while the threads stand still.
#pragma once

#include <string>

#include "base/clock.h"
#include "procfs/proc_source.h"

namespace mprun {

/// Why the process may get a timer signal ("has asked for an alarm"); empty: it gets none, or the last one has come.
/// `tid`: a living thread of the process. Without the preload library, the process's environment says whether a parent
/// with the library has set an alarm before the program started; and what lazy binding shows of its calls, whether it
/// has set one itself. A file that is bound when it is loaded (-z now) does not show that.
[[nodiscard]] std::string why_alarm_may_come(ProcSource* proc, pid_t pid, pid_t tid, Nanos now);

}  // namespace mprun
