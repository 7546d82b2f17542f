/* A library for ctypes: forks while the thread that holds the GIL waits for the one that forks. */
#include <pthread.h>
#include <semaphore.h>

#include "programs.h"

static sem_t go, done;

__attribute__((constructor)) static void start(void) {
  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
}

/* Called without the GIL, by a thread that Python knows. */
int fork_on_request(void) {
  sem_wait(&go);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  const int status = wait_for(child);
  sem_post(&done);
  return status;
}

/* Called with the GIL held. */
void tell_and_wait(void) {
  sem_post(&go);
  sem_wait(&done);
}

static void* forks(void* status) {
  *(int*)status = fork_on_request();
  return NULL;
}

/* Called with the GIL held: a thread of our own forks. */
int fork_in_own_thread(void) {
  pthread_t thread;
  int status = -1;
  require(pthread_create(&thread, NULL, forks, &status) == 0, "pthread_create");
  tell_and_wait();
  require(pthread_join(thread, NULL) == 0, "pthread_join");
  return status;
}
