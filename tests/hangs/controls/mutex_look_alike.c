/* Waits that look like one for a mutex whose owner has ended.
   unlocked: a thread waits for a mutex of its own, and another one unlocks it; with glibc that works
   library:  a lock of another library, waited for by syscall(), followed by numbers that a mutex may have */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { int word, unused, references, users, kind, rest[5]; } lock = {2, 0, 1, 1, 0, {0}};

/* At two places by turns: it gets somewhere. */
static void work(double seconds) {
  for (int i = 0; i < seconds * 8; ++i) {
    poll(NULL, 0, 55);
    usleep(70000);
  }
}

static void* wait_for_own(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
  return unused;
}

static void* wait_for_word(void* unused) {
  while (__atomic_load_n(&lock.word, __ATOMIC_ACQUIRE) == 2) syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL);
  return unused;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const int is_library = count > 2 && strcmp(arguments[2], "library") == 0;
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, is_library ? wait_for_word : wait_for_own, NULL) != 0) return 1;
  work(seconds);
  if (is_library) {
    __atomic_store_n(&lock.word, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1);
  } else {
    pthread_mutex_unlock(&mutex);
  }
  pthread_join(waiter, NULL);
  puts("done");
  return 0;
}
