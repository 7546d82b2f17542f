/* Starts two programs with an empty environment: by `execve`, by `list` (execle), with `clearenv`, by `vfork` and
 * execve, by `spawn`; or `keep`s the environment. */
#define _GNU_SOURCE
#include <spawn.h>
#include <string.h>

#include "programs.h"

static char* const nothing[] = {NULL};

static void start(const char* how, char* program) {
  char* const argv[] = {program, NULL};
  pid_t child = 0;
  if (strcmp(how, "spawn") == 0) {
    require(posix_spawn(&child, program, NULL, NULL, argv, nothing) == 0, "posix_spawn");
  } else if (strcmp(how, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execve(program, argv, nothing);
      _exit(127);
    }
  } else {
    child = fork();
    if (child == 0) {
      if (strcmp(how, "list") == 0) execle(program, program, NULL, nothing);
      if (strcmp(how, "clearenv") == 0 && clearenv() == 0) execl(program, program, NULL);
      execve(program, argv, strcmp(how, "keep") == 0 ? environ : nothing);
      _exit(127);
    }
  }
  require(wait_for(child) == 0, "the program");
}

int main(int argc, char** argv) {
  require(argc == 4, "how, and two programs");
  start(argv[1], argv[2]);
  start(argv[1], argv[3]);
  return 0;
}
