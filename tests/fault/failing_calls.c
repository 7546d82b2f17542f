/* The functions of libc by which mprun, or libstdc++ for it, calls the kernel: each can be made to fail (faults.h).
 * Calls that libc makes internally are not seen here. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"

/* The next function of that name, that of libc. */
#define REAL(name)                 \
  static __typeof__(&(name)) real; \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

#define FAIL(error, result) \
  if ((error) != 0) {       \
    errno = (error);        \
    return result;          \
  }

/* A function that fails with `bad`. */
#define WRAP(type, name, bad, parameters, ...) \
  type name parameters {                       \
    REAL(name);                                \
    const int error = injected(#name);         \
    FAIL(error, bad)                           \
    return real(__VA_ARGS__);                  \
  }

/* The same for one that a signal may interrupt. */
#define WRAP_SLOW(type, name, bad, parameters, ...)   \
  type name parameters {                              \
    REAL(name);                                       \
    const int error = injected_or_interrupted(#name); \
    FAIL(error, bad)                                  \
    return real(__VA_ARGS__);                         \
  }

/* --- files --- */

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  REAL(open);
  const int error = injected_or_interrupted("open");
  FAIL(error, -1)
  return real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  REAL(openat);
  const int error = injected_or_interrupted("openat");
  FAIL(error, -1)
  return real(folder, path, flags, mode);
}

int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  REAL(fcntl);
  const int error = injected("fcntl");
  FAIL(error, -1)
  return real(fd, command, argument);
}

/* It is closed all the same, as on Linux. */
int close(int fd) {
  REAL(close);
  const int error = injected("close");
  const int result = real(fd);
  FAIL(error, -1)
  return result;
}

WRAP_SLOW(ssize_t, read, -1, (int fd, void* to, size_t size), fd, to, shortened(fd, size))
WRAP_SLOW(ssize_t, pread, -1, (int fd, void* to, size_t size, off_t at), fd, to, shortened(fd, size), at)
WRAP_SLOW(ssize_t, pwrite, -1, (int fd, const void* from, size_t size, off_t at), fd, from, shortened(fd, size), at)
WRAP_SLOW(ssize_t, writev, -1, (int fd, const struct iovec* parts, int count), fd, parts, count)
WRAP_SLOW(int, ftruncate, -1, (int fd, off_t size), fd, size)
WRAP_SLOW(int, fallocate, -1, (int fd, int mode, off_t at, off_t size), fd, mode, at, size)
WRAP_SLOW(int, fsync, -1, (int fd), fd)
WRAP_SLOW(int, fdatasync, -1, (int fd), fd)
WRAP(off_t, lseek, -1, (int fd, off_t at, int from), fd, at, from)
WRAP(int, dup2, -1, (int from, int to), from, to)
WRAP(int, mkdir, -1, (const char* path, mode_t mode), path, mode)
WRAP(int, rmdir, -1, (const char* path), path)
WRAP(int, rename, -1, (const char* from, const char* to), from, to)
WRAP(int, renameat, -1, (int a, const char* from, int b, const char* to), a, from, b, to)
WRAP(int, unlink, -1, (const char* path), path)
WRAP(int, unlinkat, -1, (int folder, const char* path, int flags), folder, path, flags)
WRAP(int, symlink, -1, (const char* text, const char* path), text, path)
WRAP(int, access, -1, (const char* path, int mode), path, mode)
WRAP(int, chdir, -1, (const char* path), path)
WRAP(char*, getcwd, NULL, (char* to, size_t size), to, size)
WRAP(char*, realpath, NULL, (const char* path, char* to), path, to)
WRAP(ssize_t, readlink, -1, (const char* path, char* to, size_t size), path, to, size)
WRAP(ssize_t, readlinkat, -1, (int folder, const char* path, char* to, size_t size), folder, path, to, size)
WRAP(int, stat, -1, (const char* path, struct stat* info), path, info)
WRAP(int, lstat, -1, (const char* path, struct stat* info), path, info)
WRAP(int, fstat, -1, (int fd, struct stat* info), fd, info)
WRAP(int, fstatat, -1, (int folder, const char* path, struct stat* info, int flags), folder, path, info, flags)
WRAP(int, statvfs, -1, (const char* path, struct statvfs* info), path, info)
WRAP(DIR*, opendir, NULL, (const char* path), path)
WRAP(DIR*, fdopendir, NULL, (int fd), fd)
WRAP(struct dirent*, readdir, NULL, (DIR * folder), folder)

/* mprun's own messages are let through: a test reads them. */
ssize_t write(int fd, const void* from, size_t size) {
  REAL(write);
  if (fd == STDOUT_FILENO || fd == STDERR_FILENO) return real(fd, from, size);
  const int error = injected_or_interrupted("write");
  FAIL(error, -1)
  return real(fd, from, shortened(fd, size));
}

WRAP(FILE*, fopen, NULL, (const char* path, const char* mode), path, mode)
WRAP(FILE*, fopen64, NULL, (const char* path, const char* mode), path, mode)

/* --- memory --- */

WRAP(int, memfd_create, -1, (const char* name, unsigned flags), name, flags)
WRAP(void*, mmap, MAP_FAILED, (void* at, size_t size, int rights, int flags, int fd, off_t offset), at, size, rights,
     flags, fd, offset)
WRAP(ssize_t, process_vm_readv, -1,
     (pid_t pid, const struct iovec* to, unsigned long to_count, const struct iovec* from, unsigned long from_count,
      unsigned long flags),
     pid, to, to_count, from, from_count, flags)

/* --- processes --- */

WRAP(pid_t, fork, -1, (void))

/* A fork: a wrapper of vfork() cannot return in the child. mprun does not rely on the difference. */
pid_t vfork(void) {
  static pid_t (*real)(void);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "fork");
  const int error = injected("vfork");
  FAIL(error, -1)
  return real();
}

WRAP(int, execve, -1, (const char* path, char* const* words, char* const* variables), path, words, variables)
WRAP_SLOW(int, waitid, -1, (idtype_t kind, id_t id, siginfo_t* info, int options), kind, id, info, options)
WRAP_SLOW(pid_t, waitpid, -1, (pid_t pid, int* status, int options), pid, status, options)
WRAP(int, kill, -1, (pid_t pid, int number), pid, number)
WRAP(int, setpgid, -1, (pid_t pid, pid_t group), pid, group)
WRAP(pid_t, setsid, -1, (void))
WRAP(int, getrlimit, -1, (__rlimit_resource_t what, struct rlimit* limit), what, limit)
WRAP(int, setrlimit, -1, (__rlimit_resource_t what, const struct rlimit* limit), what, limit)
WRAP(int, close_range, -1, (unsigned first, unsigned last, int flags), first, last, flags)
WRAP(int, sched_getaffinity, -1, (pid_t pid, size_t size, cpu_set_t* set), pid, size, set)

int prctl(int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  unsigned long words[4];
  for (int i = 0; i < 4; ++i) words[i] = va_arg(arguments, unsigned long);
  va_end(arguments);
  REAL(prctl);
  const int error = injected("prctl");
  FAIL(error, -1)
  return real(option, words[0], words[1], words[2], words[3]);
}

/* pidfd_open, kcmp and others without a function in libc. */
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (int i = 0; i < 6; ++i) words[i] = va_arg(arguments, long);
  va_end(arguments);
  REAL(syscall);
  const int error = injected("syscall");
  FAIL(error, -1)
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* --- channels and events --- */

WRAP(int, pipe2, -1, (int ends[2], int flags), ends, flags)
WRAP(int, socketpair, -1, (int domain, int type, int protocol, int ends[2]), domain, type, protocol, ends)
WRAP(int, socket, -1, (int domain, int type, int protocol), domain, type, protocol)
WRAP(int, bind, -1, (int fd, const struct sockaddr* address, socklen_t size), fd, address, size)
WRAP(int, setsockopt, -1, (int fd, int level, int name, const void* value, socklen_t size), fd, level, name, value,
     size)
WRAP_SLOW(ssize_t, send, -1, (int fd, const void* from, size_t size, int flags), fd, from, shortened(fd, size), flags)
WRAP_SLOW(ssize_t, sendmsg, -1, (int fd, const struct msghdr* message, int flags), fd, message, flags)
WRAP_SLOW(ssize_t, sendto, -1,
          (int fd, const void* from, size_t size, int flags, const struct sockaddr* to, socklen_t to_size), fd, from,
          size, flags, to, to_size)
WRAP_SLOW(ssize_t, recv, -1, (int fd, void* to, size_t size, int flags), fd, to, size, flags)
WRAP_SLOW(ssize_t, recvmsg, -1, (int fd, struct msghdr* message, int flags), fd, message, flags)
WRAP(int, epoll_create1, -1, (int flags), flags)
WRAP(int, epoll_ctl, -1, (int set, int what, int fd, struct epoll_event* event), set, what, fd, event)
WRAP_SLOW(int, epoll_wait, -1, (int set, struct epoll_event* events, int most, int patience), set, events, most,
          patience)
WRAP_SLOW(int, poll, -1, (struct pollfd * waits, nfds_t count, int patience), waits, count, patience)
WRAP(int, signalfd, -1, (int fd, const sigset_t* set, int flags), fd, set, flags)
WRAP_SLOW(int, sigwaitinfo, -1, (const sigset_t* set, siginfo_t* info), set, info)
WRAP_SLOW(int, nanosleep, -1, (const struct timespec* time, struct timespec* left), time, left)
