/* Forks inside an OpenMP parallel region; the child does not use OpenMP. */
#include "programs.h"

#include <omp.h>

int main(void) {
  int code = -1;
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    code = wait_for(child);
  }
  return code;
}
