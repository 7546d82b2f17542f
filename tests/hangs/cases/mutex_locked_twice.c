/* A thread locks a mutex that it holds already; main joins it. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void append(void) {
  pthread_mutex_lock(&mutex); /* blocks here */
  pthread_mutex_unlock(&mutex);
}

static void* append_all(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  append();
  pthread_mutex_unlock(&mutex);
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, append_all, NULL) != 0) return 1;
  pthread_join(thread, NULL); /* hangs here */
  puts("done");
  return 0;
}
