// A thread reads under a read-write lock and locks it to read again, while a writer waits for it to let go.
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_rwlock_t lock;

static void* write_it(void* nothing) {
  (void)nothing;
  pthread_rwlock_wrlock(&lock);  // blocks here
  pthread_rwlock_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_rwlockattr_t writers_first;
  pthread_rwlockattr_init(&writers_first);
  pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&lock, &writers_first);
  pthread_rwlock_rdlock(&lock);
  pthread_t writer;
  pthread_create(&writer, NULL, write_it, NULL);
  usleep(300000);
  pthread_rwlock_rdlock(&lock);  // hangs here
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_unlock(&lock);
  pthread_join(writer, NULL);
  return 0;
}
