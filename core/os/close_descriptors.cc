#include "os/close_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <limits>

// In glibc 2.34 and later; a program that was linked with an older one (configs/portable) finds it there, too.
// NOLINTNEXTLINE(readability-redundant-declaration): those before do not declare it
extern "C" int close_range(unsigned first, unsigned last, int flags) noexcept __attribute__((weak));

namespace mprun {
namespace {

// The number of an entry of /proc/self/fd; -1 for "." and "..".
int number_of(const char* name) {
  int number = name[0] == '.' ? -1 : 0;
  for (; number >= 0 && *name != '\0'; ++name) number = number * 10 + (*name - '0');
  return number;
}

// False: there is no such list. The kernel lists in order of number, so closing a listed descriptor hides no other.
bool close_listed(int first) {
  const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) std::array<char, 2048> entries{};
  ssize_t size = 0;
  while ((size = syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(&entries[static_cast<std::size_t>(at)]);
      const int fd = number_of(entry->d_name);
      if (fd >= first && fd != folder) close(fd);
      at += entry->d_reclen;
    }
  }
  close(folder);
  return size == 0;
}

void close_each(int first) {
  rlimit open_files{};
  getrlimit(RLIMIT_NOFILE, &open_files);
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  const int end = static_cast<int>(open_files.rlim_cur < kMost ? open_files.rlim_cur : kMost);
  for (int fd = first; fd < end; ++fd) close(fd);
}

}  // namespace

void close_from(int first) {
  const bool closed = close_range != nullptr && close_range(static_cast<unsigned>(first), ~0U, 0) == 0;
  if (!closed && !close_listed(first)) close_each(first);
}

}  // namespace mprun
