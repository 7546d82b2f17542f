/* SIGALRM is blocked in all threads; one of them takes it by sigwait when the interval timer sends it, and wakes main.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static sem_t woken;
static sigset_t alarms;

static void* take_signals(void* unused) {
  (void)unused;
  int number = 0;
  sigwait(&alarms, &number);
  sem_post(&woken);
  return NULL;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const struct itimerval timer = {{0, 0}, {(time_t)seconds, (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))}};
  pthread_t taker;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, NULL);
  sem_init(&woken, 0, 0);
  if (pthread_create(&taker, NULL, take_signals, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0) return 1;
  sem_wait(&woken);
  pthread_join(taker, NULL);
  puts("done");
  return 0;
}
