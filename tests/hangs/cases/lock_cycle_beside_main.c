/* Two threads take two mutexes in opposite order, while main goes on with its work. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both_hold_one;

static void* lock_both(void* first) {
  pthread_mutex_t* const mine = first;
  pthread_mutex_t* const other = mine == &mutexes[0] ? &mutexes[1] : &mutexes[0];
  pthread_mutex_lock(mine);
  pthread_barrier_wait(&both_hold_one);
  pthread_mutex_lock(other); /* blocks here */
  pthread_mutex_unlock(other);
  pthread_mutex_unlock(mine);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both_hold_one, NULL, 2);
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, lock_both, &mutexes[i]) != 0) return 1;
  }
  for (int i = 0; i < 3000; ++i) poll(NULL, 0, 100);
  puts("done");
  return 0;
}
