/* One OpenMP region whose result shows whether both threads of the team took part. */
#ifndef TESTS_HANGS_REGION_H
#define TESTS_HANGS_REGION_H

enum { REGION_TOTAL = 2 };

static int run_region(void) {
  int total = 0;
#pragma omp parallel num_threads(2) reduction(+ : total)
  total += 1;
  return total;
}

#endif
