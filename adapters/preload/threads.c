#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An entry of getdents64(2); glibc's own functions would call malloc. */
struct kernel_dirent {
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

extern char __libc_single_threaded __attribute__((weak)); /* glibc 2.32 and later */

int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

unsigned thread_count(void) {
  if (&__libc_single_threaded != NULL && __libc_single_threaded) return 1;
  const int saved = errno;
  struct stat info;
  /* The kernel counts the threads as links of their directory. */
  const bool known = stat("/proc/self/task", &info) == 0 && info.st_nlink > 2;
  errno = saved;
  return known ? (unsigned)info.st_nlink - 2 : 2;
}

void each_other_thread(bool (*visit)(pid_t thread, void* data), void* data) {
  const pid_t self = (pid_t)syscall(SYS_gettid);
  const int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  _Alignas(struct kernel_dirent) char buffer[4096];
  bool wanted = true;
  for (long size; wanted && (size = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; wanted && at < size;) {
      const struct kernel_dirent* entry = (const struct kernel_dirent*)(buffer + at);
      const pid_t thread = (pid_t)strtol(entry->name, NULL, 10); /* 0: "." and ".." */
      if (thread > 0 && thread != self) wanted = visit(thread, data);
      at += entry->size;
    }
  }
  close(fd);
}

bool read_thread_file(pid_t thread, const char* file, char* text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)thread, file);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}
