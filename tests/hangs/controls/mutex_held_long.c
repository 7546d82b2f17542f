/* Threads wait for mutexes of all kinds, whose owner computes for a while before it unlocks them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kKinds = 6 };

static pthread_mutex_t mutexes[kKinds];
static pthread_barrier_t locked;

static void make(int i) {
  static const int kinds[] = {PTHREAD_MUTEX_NORMAL,      PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                              PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_NORMAL,    PTHREAD_MUTEX_NORMAL};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kinds[i]);
  if (i == 4) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  if (i == 5) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutexes[i], &attributes);
}

static void* hold(void* seconds) {
  for (int i = 0; i < kKinds; ++i) pthread_mutex_lock(&mutexes[i]);
  pthread_barrier_wait(&locked);
  const time_t end = time(NULL) + (time_t) * (const double*)seconds + 1;
  while (time(NULL) < end) continue;
  for (int i = 0; i < kKinds; ++i) pthread_mutex_unlock(&mutexes[i]);
  return NULL;
}

static void* lock(void* mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

int main(int count, char** arguments) {
  double seconds = count > 1 ? atof(arguments[1]) : 30;
  pthread_t holder, waiters[kKinds];
  pthread_barrier_init(&locked, NULL, 2);
  for (int i = 0; i < kKinds; ++i) make(i);
  if (pthread_create(&holder, NULL, hold, &seconds) != 0) return 1;
  pthread_barrier_wait(&locked);
  for (int i = 0; i < kKinds; ++i) {
    if (pthread_create(&waiters[i], NULL, lock, &mutexes[i]) != 0) return 2;
  }
  for (int i = 0; i < kKinds; ++i) pthread_join(waiters[i], NULL);
  pthread_join(holder, NULL);
  puts("done");
  return 0;
}
