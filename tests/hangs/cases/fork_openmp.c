/* Case 2: an OpenMP region, fork, a region in the child (GCC 58378). */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (run_region() != REGION_TOTAL) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    puts("second region");
    _exit(run_region() == REGION_TOTAL ? 0 : 3);
  }
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0); /* hangs here */
  if (ended != child || status != 0) return 4;
  if (run_region() != REGION_TOTAL) return 5;
  puts("done");
  return 0;
}
