/* A thread reads a timerfd that expires late; main joins the thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int timer;

static void* read_timer(void* unused) {
  (void)unused;
  uint64_t expired = 0;
  return read(timer, &expired, sizeof expired) == sizeof expired ? &timer : NULL;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const struct itimerspec when = {{0, 0}, {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))}};
  pthread_t reader;
  void* result = NULL;
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  if (timer < 0 || timerfd_settime(timer, 0, &when, NULL) != 0) return 1;
  if (pthread_create(&reader, NULL, read_timer, NULL) != 0) return 2;
  pthread_join(reader, &result);
  if (result == NULL) return 3;
  puts("done");
  return 0;
}
