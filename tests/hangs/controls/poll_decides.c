/* A thread asks again and again, and gives up after 20 times; main joins it. Nothing but a register counts. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int kPolls = 20;
static double seconds_between;

static void* poll_in_vain(void* unused) {
  sem_t never;
  sem_init(&never, 0, 0);
  for (int i = 0; i < kPolls; ++i) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += (long)(seconds_between * 1e9);
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    sem_timedwait(&never, &limit);
  }
  return unused;
}

int main(int count, char** arguments) {
  pthread_t thread;
  seconds_between = (count > 1 ? atof(arguments[1]) : 8) / kPolls;
  pthread_create(&thread, NULL, poll_in_vain, NULL);
  pthread_join(thread, NULL);
  puts("done");
  return 0;
}
