/* A process that shares its parent's memory, but is no thread of it (CLONE_VM), posts the semaphore that it waits for.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static char stack[64 * 1024];
static sem_t woken;

static int sleep_and_post(void* pause) {
  nanosleep(pause, NULL);
  return sem_post(&woken);
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  int status = 0;
  sem_init(&woken, 0, 0);
  const pid_t child = clone(sleep_and_post, stack + sizeof stack, CLONE_VM | SIGCHLD, &pause);
  if (child < 0) return 1;
  while (sem_wait(&woken) != 0) {
  }
  if (waitpid(child, &status, 0) != child || status != 0) return 2;
  puts("done");
  return 0;
}
