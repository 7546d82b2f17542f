// The clock by which file systems date what is made. It lags the real time by up to a tick of the kernel; that of most
// file systems of Linux 6.13 or later can be moved on.
#pragma once

#include "base/clock.h"

namespace mprun {

/// Waits until all that is made from now on is dated `moment` (wall clock, past) or later: at most a tick, 10 ms. On
/// Linux 6.13 or later it does not wait, and what the other file systems make within the tick may be dated before.
void wait_for_file_clock(Nanos moment);

}  // namespace mprun
