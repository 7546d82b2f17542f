/* execl, execlp and execle pass on what they are given, their failures too. */
#define _GNU_SOURCE
#include <errno.h>

#include "programs.h"

int main(void) {
  char* const environment[] = {"GIVEN=3", NULL};
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      require(wait_for(child) == 0, "the program");
      continue;
    }
    if (i == 0) execl("/bin/echo", "echo", "execl", "a b", "", "c", NULL);
    if (i == 1) execlp("echo", "echo", "execlp", NULL);
    if (i == 2) execle("/bin/sh", "sh", "-c", "echo execle $1 $GIVEN $HOME", "sh", "2", NULL, environment);
    _exit(i == 3 && execl("/no/such/file", "file", NULL) == -1 && errno == ENOENT ? 0 : 1);
  }
  return 0;
}
