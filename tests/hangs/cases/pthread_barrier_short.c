// A barrier for three is reached by two.
#include <pthread.h>

static pthread_barrier_t barrier;

static void* work(void* unused) {
  (void)unused;
  pthread_barrier_wait(&barrier);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&barrier, NULL, 3);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return 0;
}
