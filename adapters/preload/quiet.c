/* Waits, bounded, until every other thread of the process is blocked: a thread that runs may hold a lock that the
 * child would then wait for for ever. A thread counts as blocked when two looks in a row found it so without it
 * having run between them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload.h"

enum { MOST_THREADS = 512, MOST_STUBBORN = 64 };

static const char kName[] = "quiet";

/* Threads that once ran through a whole wait: nobody waits for them again. Written rarely; a race costs a wait. */
static pid_t stubborn[MOST_STUBBORN];
static size_t stubborn_count;

/* A thread as one look found it. */
struct sight {
  pid_t thread;
  unsigned runs; /* how often it was put on a CPU, modulo 2^32: looks live on the stacks of threads that fork */
};

/* One look at all threads. */
struct look {
  struct sight seen[MOST_THREADS]; /* by order of listing */
  size_t count;
  pid_t running; /* a thread that runs now; 0: none */
};

static bool is_stubborn(pid_t thread) {
  for (size_t i = 0; i < stubborn_count; ++i) {
    if (stubborn[i] == thread) return true;
  }
  return false;
}

static bool look_at(pid_t thread, void* data) {
  struct look* look = data;
  char text[512];
  if (is_stubborn(thread) || !read_thread_file(thread, "stat", text, sizeof text)) return true;
  const char* state = strrchr(text, ')'); /* the name before it may hold anything */
  if (state != NULL && state[1] == ' ' && state[2] == 'R') look->running = thread;
  unsigned long long runs = 0;
  if (read_thread_file(thread, "schedstat", text, sizeof text)) sscanf(text, "%*u %*u %llu", &runs);
  if (look->count < MOST_THREADS) look->seen[look->count++] = (struct sight){thread, (unsigned)runs};
  return look->running == 0;
}

static struct look look_around(void) {
  struct look look;
  look.count = 0;
  look.running = 0;
  each_other_thread(look_at, &look);
  return look;
}

static bool same(const struct look* a, const struct look* b) {
  return a->count == b->count && memcmp(a->seen, b->seen, a->count * sizeof a->seen[0]) == 0;
}

/* The thread that a wait was in vain for: one that runs, or one that ran between two looks that found it blocked; 0 if
 * only threads that came or went are to blame. */
static pid_t restless(const struct look* before, const struct look* now) {
  if (now->running != 0) return now->running;
  if (before->running != 0) return before->running;
  for (size_t i = 0; i < now->count && i < before->count && now->seen[i].thread == before->seen[i].thread; ++i) {
    if (now->seen[i].runs != before->seen[i].runs) return now->seen[i].thread;
  }
  return 0;
}

static void give_up(pid_t thread, unsigned milliseconds) {
  char name[64] = "?";
  read_thread_file(thread, "comm", name, sizeof name);
  name[strcspn(name, "\n")] = '\0';
  if (stubborn_count < MOST_STUBBORN) stubborn[stubborn_count++] = thread;
  note(kName,
       "thread %d (%s) was still running after %.1f s when the process forked; a lock it held then is held for "
       "ever in the child (MPRUN_QUIET_SECONDS sets the wait, MPRUN_ADAPTERS=-quiet leaves it out)",
       (int)thread, name, milliseconds / 1e3);
}

static int wait_until_quiet(void* data, int64_t deadline) {
  (void)data;
  (void)deadline; /* ours is shorter, and the user's to set */
  const int64_t end = monotonic_ns() + (int64_t)quiet_milliseconds() * 1000000;
  struct look before = look_around();
  for (long pause_ns = 50000;; pause_ns = pause_ns < 5000000 ? pause_ns * 2 : pause_ns) {
    if (before.count == 0 && before.running == 0) return 0;
    const struct look now = look_around();
    if (before.running == 0 && now.running == 0 && same(&before, &now)) return 0;
    if (monotonic_ns() >= end) {
      const pid_t thread = restless(&before, &now);
      if (thread != 0) give_up(thread, quiet_milliseconds());
      return 0;
    }
    const struct timespec pause = {0, pause_ns};
    nanosleep(&pause, NULL);
    before = look_around();
  }
}

void register_quiet(void) {
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = wait_until_quiet, .deadline_ms = 3600000, .only_with_threads = 1};
  register_adapter(&hook);
}
