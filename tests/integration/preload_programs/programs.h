/* Shared by the programs of test_preload.py. Output is written with write(), whole lines at a time: nothing is buffered
 * across a fork. */
#ifndef MPRUN_TESTS_PROGRAMS_H
#define MPRUN_TESTS_PROGRAMS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ends a process that hangs; the time is longer than anything takes on a slow machine. */
enum { PATIENCE_SECONDS = 30 };

static inline void say(int fd, const char* format, ...) __attribute__((format(printf, 2, 3)));
static inline void say(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[2048];
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (write(fd, text, (size_t)size) != size) abort();
}

/* Ends the program unless `condition`, naming what went wrong. */
static inline void require(int condition, const char* what) {
  if (condition) return;
  say(STDERR_FILENO, "failed: %s\n", what);
  _exit(99);
}

/* The child's exit code; a signal's number plus 128. */
static inline int wait_for(pid_t child) {
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
