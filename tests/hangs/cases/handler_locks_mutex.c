/* A signal's handler locks the mutex that the program has locked when the signal comes. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void handle(int number) {
  (void)number;
  pthread_mutex_lock(&mutex); /* hangs here */
  pthread_mutex_unlock(&mutex);
}

int main(void) {
  signal(SIGALRM, handle);
  pthread_mutex_lock(&mutex);
  ualarm(100000, 0);
  sleep(1); /* the signal comes meanwhile */
  pthread_mutex_unlock(&mutex);
  puts("done");
  return 0;
}
