// One thread of a team skips a barrier, and waits at the end of the region for the others.
#include <omp.h>
#include <stdio.h>

int main(void) {
#pragma omp parallel num_threads(4)
  {
    if (omp_get_thread_num() != 0) {
#pragma omp barrier
      printf("thread %d\n", omp_get_thread_num());
#pragma omp barrier
    }
#pragma omp barrier
  }  // hangs here
  puts("done");
}
