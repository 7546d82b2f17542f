/* A thread ends without unlocking its mutex; main has joined it and locks the mutex. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* lock(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  return NULL; /* an early return */
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, lock, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  pthread_mutex_lock(&mutex); /* hangs here */
  puts("done");
  return 0;
}
