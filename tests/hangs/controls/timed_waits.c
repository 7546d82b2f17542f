/* Threads that wait in vain, each in its own way and for a limited time; main joins them. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct timespec deadline;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_locked = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static void* wait_for_mutex(void* unused) {
  (void)unused;
  return pthread_mutex_timedlock(&held, &deadline) == 0 ? NULL : &deadline;
}

static void* wait_for_condition(void* unused) {
  (void)unused;
  pthread_mutex_lock(&of_condition);
  while (pthread_cond_timedwait(&condition, &of_condition, &deadline) == 0) {
  }
  pthread_mutex_unlock(&of_condition);
  return &deadline;
}

static void* wait_for_rwlock(void* unused) {
  (void)unused;
  return pthread_rwlock_timedwrlock(&read_locked, &deadline) == 0 ? NULL : &deadline;
}

static void* wait_for_semaphore(void* unused) {
  (void)unused;
  return sem_timedwait(&semaphore, &deadline) == 0 ? NULL : &deadline;
}

int main(int count, char** arguments) {
  void* (*const waits[])(void*) = {wait_for_mutex, wait_for_condition, wait_for_rwlock, wait_for_semaphore};
  pthread_t threads[4];
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += count > 1 ? (time_t)atof(arguments[1]) : 30;
  pthread_mutex_lock(&held);
  pthread_rwlock_rdlock(&read_locked);
  sem_init(&semaphore, 0, 0);
  for (int i = 0; i < 4; ++i) {
    if (pthread_create(&threads[i], NULL, waits[i], NULL) != 0) return 1;
  }
  for (int i = 0; i < 4; ++i) {
    void* timed_out = NULL;
    pthread_join(threads[i], &timed_out);
    if (timed_out == NULL) return 2;
  }
  puts("done");
  return 0;
}
