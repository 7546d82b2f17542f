/* Main waits for a semaphore that a POSIX timer posts: by a signal (argument 2: "signal") or by a thread ("thread"). */
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sem_t woken;

static void on_signal(int number) {
  (void)number;
  sem_post(&woken);
}

static void on_thread(union sigval unused) {
  (void)unused;
  sem_post(&woken);
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const struct itimerspec when = {{0, 0}, {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))}};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  timer_t timer;
  if (count > 2 && strcmp(arguments[2], "thread") == 0) {
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = on_thread;
  }
  sem_init(&woken, 0, 0);
  signal(SIGRTMIN, on_signal);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0) return 1;
  while (sem_wait(&woken) != 0) {
  }
  puts("done");
  return 0;
}
