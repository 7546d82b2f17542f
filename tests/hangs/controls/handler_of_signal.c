/* Waits for a semaphore that the handler of a signal from outside posts, in its only thread that does not block it, or,
   with "inside", from within the handler of another one. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sem_t has_come;

static void post(int number) {
  (void)number;
  sem_post(&has_come);
}

static void wait_inside(int number) {
  (void)number;
  while (sem_wait(&has_come) != 0) {
  }
}

static void* wait_for_signals(void* unused) {
  for (;;) pause();
  return unused;
}

int main(int count, char** arguments) {
  const int is_inside = count > 2 && strcmp(arguments[2], "inside") == 0;
  sem_init(&has_come, 0, 0);
  signal(strcmp(arguments[1], "SIGABRT") == 0 ? SIGABRT : SIGUSR1, post);
  signal(SIGUSR2, wait_inside);
  pthread_t thread;
  if (!is_inside) {
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) != 0) return 1;
    sigset_t blocked;
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
  }
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  if (is_inside) {
    raise(SIGUSR2);
  } else {
    wait_inside(0);
  }
  puts("done");
  return 0;
}
