/* A thread ends without unlocking its mutex; another waits for it, and main for that one, while a third works. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* lock(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  return NULL; /* an early return */
}

static void* work(void* unused) {
  for (;;) poll(NULL, 0, 10);
  return unused;
}

int main(void) {
  pthread_t owner, waiter, worker;
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 1;
  if (pthread_create(&owner, NULL, lock, NULL) != 0) return 1;
  pthread_join(owner, NULL);
  if (pthread_create(&waiter, NULL, lock, NULL) != 0) return 1;
  pthread_join(waiter, NULL); /* hangs here */
  puts("done");
  return 0;
}
