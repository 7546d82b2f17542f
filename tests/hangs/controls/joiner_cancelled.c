/* A thread has a mutex and joins one that wants it. Main sleeps, then cancels the first, whose cleanup unlocks it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t wanting;

static void unlock(void* unused) {
  (void)unused;
  pthread_mutex_unlock(&mutex);
}

static void* want(void* unused) {
  usleep(300000);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void* join(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, NULL);
  pthread_join(wanting, NULL);
  pthread_cleanup_pop(1);
  return unused;
}

int main(int count, char** arguments) {
  pthread_t joining;
  if (pthread_create(&wanting, NULL, want, NULL) != 0 || pthread_create(&joining, NULL, join, NULL) != 0) return 1;
  usleep((useconds_t)(atof(arguments[count - 1]) * 1e6));
  pthread_cancel(joining);
  pthread_join(joining, NULL);
  pthread_join(wanting, NULL);
  puts("done");
  return 0;
}
