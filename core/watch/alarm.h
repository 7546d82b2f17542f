// Signals by a clock (alarm(2), setitimer(2)), which /proc does not show. The preload library keeps in its process's
// own memory whether one was asked for: nobody can lose that, nobody waits for it to be heard, and it belongs to the
// same instant as all else that is read while the threads stand still.
#pragma once

#include <string>

#include "base/clock.h"
#include "procfs/proc_source.h"

namespace mprun {

/// Why a signal by a clock may come to the process ("has asked for an alarm"); empty: none will, or the last one has
/// come. `tid`: a living thread of it. The environment of a process without the preload library says whether it had an
/// alarm when its program was started; what such a program asks for itself is not known.
[[nodiscard]] std::string why_alarm_may_come(ProcSource* proc, pid_t pid, pid_t tid, Nanos now);

}  // namespace mprun
