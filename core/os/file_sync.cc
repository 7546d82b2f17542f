#include "os/file_sync.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "os/uninterrupted.h"

namespace mprun {

FileSync::~FileSync() {
  wait();
  if (context_ != 0) syscall(SYS_io_destroy, context_);
}

void FileSync::start(std::vector<Fd> owned, int last) {
  for (Fd& fd : owned) owned_.push_back(std::move(fd));
  last_ = last;
  if (context_ == 0 && !refused_) refused_ = syscall(SYS_io_setup, 1, &context_) != 0;
  next();
}

bool FileSync::idle() {
  if (current_ >= 0) take(0);
  return current_ < 0;
}

void FileSync::wait() {
  while (current_ >= 0) take(1);
}

void FileSync::next() {
  while (current_ < 0 && (!owned_.empty() || last_ >= 0)) {
    const int fd = owned_.empty() ? std::exchange(last_, -1) : owned_.front().get();
    if (!refused_) {
      request_ = {};
      request_.aio_lio_opcode = IOCB_CMD_FDSYNC;
      request_.aio_fildes = static_cast<std::uint32_t>(fd);
      iocb* list[] = {&request_};
      if (syscall(SYS_io_submit, context_, 1, list) == 1) {
        current_ = fd;
        return;
      }
    }
    note(uninterrupted([&] { return fdatasync(fd); }) == 0 ? 0 : -errno);
    if (!owned_.empty()) owned_.pop_front();
  }
}

// Asks for the end of the current one; `wanted` 1 waits for it.
void FileSync::take(long wanted) {
  io_event event{};
  timespec none{};
  const long got = syscall(SYS_io_getevents, context_, wanted, 1, &event, wanted == 0 ? &none : nullptr);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  note(got == 1 ? static_cast<long>(event.res) : -errno);
  if (!owned_.empty() && owned_.front().get() == current_) owned_.pop_front();
  current_ = -1;
  next();
}

// A file that cannot be synced at all (a pipe, some file systems) is as safe as it can be.
void FileSync::note(long result) {
  if (result < 0 && result != -EINVAL && result != -EROFS && error_number_ == 0)
    error_number_ = static_cast<int>(-result);
}

}  // namespace mprun
