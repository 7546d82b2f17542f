/* What needs adapters: it forks and has threads. Or only one of both. */
#include <pthread.h>

#include "programs.h"

static void* nothing(void* unused) { return unused; }

int main(void) {
#ifndef ONLY_FORKS
  pthread_t thread;
  require(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create");
  pthread_join(thread, NULL);
#endif
#ifndef ONLY_THREADS
  const pid_t child = fork();
  if (child == 0) _exit(0);
  require(wait_for(child) == 0, "the child");
#endif
  return nothing(NULL) != NULL;
}
