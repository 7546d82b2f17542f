/* The minimum cost of running COUNT commands: posix_spawn and waitid, SLOTS of them in flight, nothing
 * recorded. The reference for tests/bench/commands.py.
 *
 *     spawn_loop COUNT SLOTS PROGRAM       runs PROGRAM NUMBER for each number below COUNT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char** environ;

/* Starts the program with a number as its only argument; returns 0, or prints a message and returns -1. */
static int start(char* program, long number) {
  char text[24];
  snprintf(text, sizeof text, "%ld", number);
  char* argv[] = {program, text, NULL};
  pid_t pid;
  const int error_number = posix_spawn(&pid, program, NULL, NULL, argv, environ);
  if (error_number == 0) return 0;
  fprintf(stderr, "spawn_loop: %s: %s\n", program, strerror(error_number));
  return -1;
}

/* Waits for any child; returns 0 if it exited with 0. */
static int wait_for_one(void) {
  siginfo_t info;
  while (waitid(P_ALL, 0, &info, WEXITED) != 0) {
    if (errno != EINTR) return -1;
  }
  return info.si_code == CLD_EXITED && info.si_status == 0 ? 0 : -1;
}

/* A whole number of at least 1 at the start of `text`; -1 if there is none. */
static long read_count(const char* text) {
  char* end = NULL;
  const long count = strtol(text, &end, 10);
  return end != text && *end == '\0' && count > 0 ? count : -1;
}

int main(int argc, char** argv) {
  const long count = argc == 4 ? read_count(argv[1]) : -1;
  const long slots = argc == 4 ? read_count(argv[2]) : -1;
  if (count < 0 || slots < 0) {
    fprintf(stderr, "usage: spawn_loop COUNT SLOTS PROGRAM\n");
    return 2;
  }
  int failed = 0;
  for (long number = 0; number < count; ++number) {
    if (number >= slots && wait_for_one() != 0) failed = 1;
    if (start(argv[3], number) != 0) return 1;
  }
  for (long left = count < slots ? count : slots; left > 0; --left) {
    if (wait_for_one() != 0) failed = 1;
  }
  return failed;
}
