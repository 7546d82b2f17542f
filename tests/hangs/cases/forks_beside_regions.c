/* 200 forks from the main thread of a process that has used OpenMP, while another thread runs regions all the time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"

static atomic_bool stop;
static atomic_long regions, wrong;

static void* run_regions(void* unused) {
  (void)unused;
  while (!stop) {
    if (run_region() != REGION_TOTAL) ++wrong;
    ++regions;
  }
  return NULL;
}

/* True if a child forked now can run a region, and so can its parent afterwards. */
static int fork_once(void) {
  const pid_t child = fork();
  if (child == 0) _exit(run_region() == REGION_TOTAL ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 && run_region() == REGION_TOTAL;
}

int main(int count, char** arguments) {
  const int forks = count > 1 ? atoi(arguments[1]) : 200;
  pthread_t other;
  if (run_region() != REGION_TOTAL || pthread_create(&other, NULL, run_regions, NULL) != 0) return 1;
  while (regions == 0) usleep(1000);
  int right = 0;
  for (int i = 0; i < forks; ++i) right += fork_once();
  const long during = regions;
  while (regions == during) usleep(1000); /* the other thread's team is alive as well */
  stop = 1;
  pthread_join(other, NULL);
  printf("%d of %d forks right, %ld regions wrong\n", right, forks, (long)wrong);
  return right == forks && wrong == 0 ? 0 : 2;
}
