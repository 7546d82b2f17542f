// A thread joins another while it holds the mutex that the other needs. Main goes on with its work.
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* nothing) {
  (void)nothing;
  pthread_mutex_lock(&lock);  // blocks here
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void* stop_worker(void* nothing) {
  (void)nothing;
  pthread_t worker;
  pthread_mutex_lock(&lock);
  pthread_create(&worker, NULL, work, NULL);
  pthread_join(worker, NULL);  // and here
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t stopper;
  if (pthread_create(&stopper, NULL, stop_worker, NULL) != 0) return 1;
  for (int i = 0; i < 3000; ++i) poll(NULL, 0, 100);
  puts("done");
  return 0;
}
