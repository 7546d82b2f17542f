#include "os/file_clock.h"

#include <ctime>

namespace mprun {

void wait_for_file_clock(Nanos moment) {
  constexpr timespec kPause{0, 100'000};
  while (read_clock(CLOCK_REALTIME_COARSE) < moment) nanosleep(&kPause, nullptr);
}

}  // namespace mprun
