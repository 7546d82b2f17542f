/* What a deadline costs its thread: deadline_cost COUNT prints the seconds to begin and end one. */
#include <mprun/deadline.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const long count = atol(argv[1]);
  struct mprun_deadline deadline;
  if (mprun_begin_deadline(&deadline, 60, "warm up") != 0) return 3; /* it would measure nothing */
  mprun_end_deadline(&deadline);
  const double begin = now();
  for (long i = 0; i < count; ++i) {
    mprun_begin_deadline(&deadline, 60, "loading");
    mprun_end_deadline(&deadline);
  }
  printf("%.12f\n", (now() - begin) / (double)count);
  return 0;
}
