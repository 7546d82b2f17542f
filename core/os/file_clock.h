// The clock by which file systems date what is made. It lags the real time by up to a tick of the kernel.
#pragma once

#include "base/clock.h"

namespace mprun {

/// Waits until all that is made from now on is dated `moment` (wall clock, past) or later: at most a tick, 10 ms.
void wait_for_file_clock(Nanos moment);

}  // namespace mprun
