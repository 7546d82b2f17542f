/* Waits for a robust mutex in shared memory whose owner sleeps, and ends without unlocking it: the kernel does that. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
  pthread_mutex_t mutex;
  pthread_barrier_t locked;
};

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  struct shared* const shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  pthread_mutexattr_t of_mutex;
  pthread_mutexattr_init(&of_mutex);
  pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&of_mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->mutex, &of_mutex);
  pthread_barrierattr_t of_barrier;
  pthread_barrierattr_init(&of_barrier);
  pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->locked, &of_barrier, 2);
  const pid_t owner = fork();
  if (owner < 0) return 2;
  if (owner == 0) {
    pthread_mutex_lock(&shared->mutex);
    pthread_barrier_wait(&shared->locked);
    usleep((useconds_t)(1e6 * seconds));
    _exit(0);
  }
  pthread_barrier_wait(&shared->locked);
  if (pthread_mutex_lock(&shared->mutex) != EOWNERDEAD) return 3;
  if (waitpid(owner, NULL, 0) != owner) return 4;
  puts("done");
  return 0;
}
