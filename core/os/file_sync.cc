#include "os/file_sync.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "os/uninterrupted.h"

namespace mprun {
namespace {

[[nodiscard]] bool is_directory(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

[[nodiscard]] int failure_of(int error_number) {
  return error_number == EINVAL || error_number == EROFS ? 0 : error_number;
}

}  // namespace

int sync_now(int fd) {
  const bool directory = is_directory(fd);
  return uninterrupted([&] { return directory ? fsync(fd) : fdatasync(fd); }) == 0 ? 0 : failure_of(errno);
}

int sync_directory(const std::string& path) {
  const Fd directory = open_fd(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
  if (!directory) return errno == EACCES ? 0 : errno;
  return sync_now(directory.get());
}

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

void FileSync::run(const std::vector<Fd>& owned, int last) {
  for (const Fd& fd : owned) note(sync_now(fd.get()));
  note(sync_now(last));
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
      request_.aio_lio_opcode = is_directory(fd) ? IOCB_CMD_FSYNC : IOCB_CMD_FDSYNC;
      request_.aio_fildes = static_cast<std::uint32_t>(fd);
      iocb* list[] = {&request_};
      if (syscall(SYS_io_submit, context_, 1, list) == 1) {
        current_ = fd;
        return;
      }
    }
    note(sync_now(fd));
    if (!owned_.empty()) owned_.pop_front();
  }
}

// Takes the completion of the current sync; `wanted` 1 waits for it.
void FileSync::take(long wanted) {
  io_event event{};
  timespec none{};
  const long got = syscall(SYS_io_getevents, context_, wanted, 1, &event, wanted == 0 ? &none : nullptr);
  if (got == 0 || (got < 0 && errno == EINTR)) return;
  note(failure_of(got == 1 ? static_cast<int>(-event.res) : errno));
  if (!owned_.empty() && owned_.front().get() == current_) owned_.pop_front();
  current_ = -1;
  next();
}

void FileSync::note(int failure) {
  if (error_number_ == 0) error_number_ = failure;
}

}  // namespace mprun
