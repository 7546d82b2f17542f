/* Forks beside busy threads: one that `spin`s, 8 that `switch` between sleep and work, one that will `settle`.
 * Prints a thread's number, then of each fork how long it took and whether the thread had settled in the child. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "programs.h"

static atomic_int number, at_rest;

static void* spin(void* data) {
  pthread_setname_np(pthread_self(), "spinner");
  number = gettid();
  for (;;) continue;
  return data;
}

static void* wake_and_sleep(void* data) {
  pthread_setname_np(pthread_self(), "waker");
  prctl(PR_SET_TIMERSLACK, 1); /* so short a sleep ends while the preload library looks: they never all seem to rest */
  number = gettid();
  for (;;) usleep(5);
  return data;
}

static void* settle(void* data) {
  number = gettid();
  for (const double end = seconds_now() + 0.5; seconds_now() < end;) continue;
  at_rest = 1;
  for (;;) pause();
  return data;
}

static const struct mode {
  const char* name;
  void* (*run)(void*);
  int threads, forks;
} modes[] = {{"spin", spin, 1, 2}, {"switch", wake_and_sleep, 8, 2}, {"settle", settle, 1, 1}};

int main(int argc, char** argv) {
  const struct mode* mode = modes;
  while (argc == 2 && strcmp(mode->name, argv[1]) != 0) ++mode;
  for (int i = 0; i < mode->threads; ++i) {
    pthread_t thread;
    require(pthread_create(&thread, NULL, mode->run, NULL) == 0, "pthread_create");
  }
  while (number == 0) usleep(1000);
  say(STDOUT_FILENO, "%d\n", number);
  for (int i = 0; i < mode->forks; ++i) {
    const double start = seconds_now();
    const pid_t child = fork();
    if (child == 0) _exit(at_rest);
    const double seconds = seconds_now() - start;
    say(STDOUT_FILENO, "%.3f %s\n", seconds, wait_for(child) == 1 ? "at rest" : "busy");
  }
  return 0;
}
