/* Two readers of a pthread_rwlock want to become its writer without unlocking it: each waits for the other. */
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both_read;

static void* read_and_write(void* unused) {
  (void)unused;
  pthread_rwlock_rdlock(&rwlock);
  pthread_barrier_wait(&both_read);
  pthread_rwlock_wrlock(&rwlock); /* blocks here */
  pthread_rwlock_unlock(&rwlock);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both_read, NULL, 2);
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, read_and_write, NULL) != 0) return 1;
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL); /* hangs here */
  puts("done");
  return 0;
}
