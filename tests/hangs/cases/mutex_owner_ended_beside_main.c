/* A thread ends without unlocking its mutex; another waits for it, while main computes. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* lock(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  return NULL; /* an early return */
}

int main(void) {
  pthread_t owner, waiter;
  if (pthread_create(&owner, NULL, lock, NULL) != 0) return 1;
  pthread_join(owner, NULL);
  if (pthread_create(&waiter, NULL, lock, NULL) != 0) return 1; /* blocks there */
  const time_t end = time(NULL) + 300;
  while (time(NULL) < end) continue;
  puts("done");
  return 0;
}
