/* Does what its arguments say, one after the other: `thread` starts an idle one, `fork`, `fork-in-thread`, `vfork` and
 * `spawn` make a child and print "CHILD PARENT THREAD"; `alarm=SECONDS`, `ualarm=SECONDS`, `real=SECONDS`,
 * `virtual=SECONDS` and `prof=SECONDS` set the clocks of the process, `in-child=...` that of a forked one, and
 * `in-vfork=alarm` that of one that shares our memory; `many=COUNT` sets alarms again and again. `asked` and
 * `in-child=asked` print "asked 1" where the library remembers an alarm; `exec` runs the rest in a new program, `env`
 * prints the value of MPRUN_ALARM. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "programs.h"

static char true_program[] = "/bin/true";
static char* const true_arguments[] = {true_program, NULL};

static void* idle(void* unused) {
  for (;;) pause();
  return unused;
}

static void start(void* (*run)(void*), void* argument, pthread_t* thread) {
  require(pthread_create(thread, NULL, run, argument) == 0, "pthread_create");
}

static void ended(pid_t child) {
  require(wait_for(child) == 0, "the child");
  say(STDOUT_FILENO, "%d %d %ld\n", (int)child, (int)getpid(), syscall(SYS_gettid));
}

static void make_child(const char* how) {
  pid_t child = -1;
  if (strcmp(how, "spawn") == 0) {
    require(posix_spawn(&child, true_program, NULL, NULL, true_arguments, environ) == 0, "posix_spawn");
  } else if (strcmp(how, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execv(true_program, true_arguments);
      _exit(127);
    }
  } else {
    child = fork();
    if (child == 0) _exit(0);
  }
  ended(child);
}

static void* fork_here(void* unused) {
  make_child("fork");
  return unused;
}

static int set_timer(const char* word, __itimer_which_t which) {
  const struct itimerval value = {.it_value = {.tv_sec = atoi(strchr(word, '=') + 1)}};
  require(setitimer(which, &value, NULL) == 0, "setitimer");
  return 0;
}

static void tell_asked(void) {
  const int* asked = dlsym(RTLD_DEFAULT, "mprun_asked_for_alarm");
  require(asked != NULL, "dlsym");
  say(STDOUT_FILENO, "asked %d\n", *asked);
}

static void set_clock(const char* word) {
  if (strcmp(word, "asked") == 0) tell_asked();
  if (strchr(word, '=') == NULL) return;
  const char* value = strchr(word, '=') + 1;
  if (strncmp(word, "alarm=", 6) == 0) alarm((unsigned)atoi(value));
  if (strncmp(word, "ualarm=", 7) == 0) ualarm((useconds_t)atoi(value) * 1000000, 0);
  if (strncmp(word, "real=", 5) == 0) set_timer(word, ITIMER_REAL);
  if (strncmp(word, "virtual=", 8) == 0) set_timer(word, ITIMER_VIRTUAL);
  if (strncmp(word, "prof=", 5) == 0) set_timer(word, ITIMER_PROF);
}

static void step(const char* word) {
  pthread_t thread;
  if (strcmp(word, "thread") == 0) {
    start(idle, NULL, &thread);
  } else if (strcmp(word, "fork-in-thread") == 0) {
    start(fork_here, NULL, &thread);
    require(pthread_join(thread, NULL) == 0, "pthread_join");
  } else if (strncmp(word, "in-child=", 9) == 0) {
    const pid_t child = fork();
    if (child == 0) {
      set_clock(word + 9);
      _exit(0);
    }
    ended(child);
  } else if (strcmp(word, "in-vfork=alarm") == 0) {
    const pid_t child = vfork();
    if (child == 0) {
      alarm(30);
      _exit(0);
    }
    ended(child);
  } else if (strncmp(word, "many=", 5) == 0) {
    for (int left = atoi(word + 5); left > 0; --left) alarm(30);
  } else if (strchr(word, '=') != NULL || strcmp(word, "asked") == 0) {
    set_clock(word);
  } else {
    make_child(word);
  }
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "exec") == 0) execv("/proc/self/exe", argv + i);
    if (strcmp(argv[i], "env") == 0) execlp("sh", "sh", "-c", "echo alarm $MPRUN_ALARM", NULL);
    step(argv[i]);
  }
  return 0;
}
