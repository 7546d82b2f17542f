/* The condition is signalled before any thread waits for it, and the waiter never learns of it (a lost wake-up). */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t signalled;

static void* wait_until_ready(void* unused) {
  (void)unused;
  pthread_barrier_wait(&signalled);
  pthread_mutex_lock(&mutex);
  pthread_cond_wait(&ready, &mutex); /* blocks here */
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t waiter;
  pthread_barrier_init(&signalled, NULL, 2);
  if (pthread_create(&waiter, NULL, wait_until_ready, NULL) != 0) return 1;
  pthread_cond_signal(&ready);
  pthread_barrier_wait(&signalled);
  pthread_join(waiter, NULL); /* hangs here */
  puts("done");
  return 0;
}
