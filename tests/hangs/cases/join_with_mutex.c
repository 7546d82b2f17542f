// A thread joins another while it holds the mutex that the other needs.
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* nothing) {
  (void)nothing;
  pthread_mutex_lock(&lock);  // blocks here
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t worker;
  pthread_mutex_lock(&lock);
  pthread_create(&worker, NULL, work, NULL);
  pthread_join(worker, NULL);  // hangs here
  pthread_mutex_unlock(&lock);
  return 0;
}
