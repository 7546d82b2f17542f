/* Forks beside three idle threads, then again, then while one of them works. Prints of each fork how many threads the
 * preload library has asked whether they run, and whether one was at work in the child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "programs.h"

static sem_t work;
static atomic_bool at_work;
static atomic_int questions;

/* The preload library calls this one: the program is linked with -rdynamic. */
int open(const char* path, int flags, ...) {
  if (strstr(path, "/task/") != NULL && strstr(path, "/syscall") != NULL) ++questions;
  return openat(AT_FDCWD, path, flags);
}

static void* idle(void* data) {
  for (;;) pause();
  return data;
}

static void* work_once(void* data) {
  while (sem_wait(&work) != 0) continue;
  at_work = true;
  for (const double end = seconds_now() + 0.5; seconds_now() < end;) continue;
  at_work = false;
  return idle(data);
}

static void fork_once(void) {
  questions = 0;
  const pid_t child = fork();
  if (child == 0) _exit(at_work);
  const int asked = questions;
  say(STDOUT_FILENO, "%d %s\n", asked, wait_for(child) == 0 ? "idle" : "at work");
}

int main(void) {
  sem_init(&work, 0, 0);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    require(pthread_create(&thread, NULL, i == 1 ? work_once : idle, NULL) == 0, "pthread_create");
  }
  fork_once();
  fork_once();
  sem_post(&work);
  while (!at_work) continue;
  fork_once();
  return 0;
}
