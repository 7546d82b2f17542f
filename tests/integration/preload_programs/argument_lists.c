/* execl, execlp and execle pass on what they are given, their failures too; execle starts a Python. */
#define _GNU_SOURCE
#include <errno.h>

#include "programs.h"

int main(int argc, char** argv) {
  require(argc == 2, "a Python");
  const char* const program =
      "import os, sys; print('execle', *sys.argv[1:], os.getenv('GIVEN'), os.getenv('HOME', ''))";
  char* const environment[] = {"GIVEN=3", NULL};
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      require(wait_for(child) == 0, "the program");
      continue;
    }
    if (i == 0) execl("/bin/echo", "echo", "execl", "a b", "", "c", NULL);
    if (i == 1) execlp("echo", "echo", "execlp", NULL);
    if (i == 2) execle(argv[1], "python", "-c", program, "2", NULL, environment);
    _exit(i == 3 && execl("/no/such/file", "file", NULL) == -1 && errno == ENOENT ? 0 : 1);
  }
  return 0;
}
