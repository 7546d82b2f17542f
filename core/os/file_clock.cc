#include "os/file_clock.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <ctime>

#include "os/fd.h"

namespace mprun {
namespace {

// Since Linux 6.13 ext4, xfs, btrfs and tmpfs date by a clock that is never behind a date that any of them has given,
// and a change of a file whose date was read gets the real time (Documentation/filesystems/multigrain-ts.rst).
Nanos date_of_change() {
  const Fd file(memfd_create("mprun-clock", MFD_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || fchmod(file.get(), status.st_mode) != 0 ||
      fstat(file.get(), &status) != 0) {
    return 0;
  }
  return status.st_ctim.tv_sec * kNanosPerSecond + status.st_ctim.tv_nsec;
}

}  // namespace

void wait_for_file_clock(Nanos moment) {
  constexpr timespec kPause{0, 100'000};
  if (date_of_change() >= moment) return;
  while (read_clock(CLOCK_REALTIME_COARSE) < moment) nanosleep(&kPause, nullptr);
}

}  // namespace mprun
