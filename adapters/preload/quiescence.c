/* Waits, for a limited time, until every other thread of the process is blocked: a thread that runs may hold a lock
 * that the child would then wait for for ever. One look finds how often each thread has run and then that it is
 * blocked. If a second one finds that no thread has run since, all of them were blocked at once between the two. The
 * next fork needs only one look if no thread has run since then. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload.h"

enum { MOST_STUBBORN = 64, SUSPECT_MS = 5 };

static const char kName[] = "quiet";

/* Threads that once ran through a whole wait: no fork waits for them again. The newest replace the oldest. Written
 * rarely; a race costs a wait. */
static pid_t stubborn[MOST_STUBBORN];
static size_t stubborn_count;

/* A look at all threads. */
struct look {
  uint64_t fingerprint; /* of all threads and of what schedstat says of each; 0: there are none */
  bool running;         /* one of them runs now */
  bool uncounted;       /* it is not known of one of them how often it has run */
};

/* Of the last look that found all of them blocked; 0: none has. A look of another thread, which leaves itself out, has
 * another one. */
static _Atomic uint64_t quiet_fingerprint;

static bool is_stubborn(pid_t thread) {
  for (size_t i = 0; i < MOST_STUBBORN; ++i) {
    if (stubborn[i] == thread) return true;
  }
  return false;
}

static bool runs_now(pid_t thread) {
  char text[32];
  return read_thread_file(thread, "syscall", text, sizeof text) && strncmp(text, "running", 7) == 0;
}

/* What the scheduler has counted of a thread; 0 if it cannot be read, or if this kernel counts nothing. */
struct schedstat {
  unsigned long long ran_ns, waited_ns, runs;
};

static struct schedstat read_schedstat(pid_t thread) {
  char text[128];
  struct schedstat stat = {0, 0, 0};
  if (read_thread_file(thread, "schedstat", text, sizeof text)) {
    sscanf(text, "%llu %llu %llu", &stat.ran_ns, &stat.waited_ns, &stat.runs);
  }
  return stat;
}

static bool count_runs(pid_t thread, void* data) {
  struct look* look = data;
  if (is_stubborn(thread)) return true;
  const struct schedstat stat = read_schedstat(thread);
  const uint64_t words[] = {(uint64_t)thread, stat.ran_ns, stat.waited_ns, stat.runs};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
    look->fingerprint = (look->fingerprint ^ words[i]) * 1099511628211U;
  }
  look->uncounted = look->uncounted || stat.runs == 0;
  return true;
}

static bool look_at(pid_t thread, void* data) {
  struct look* look = data;
  count_runs(thread, data);
  look->running = !is_stubborn(thread) && runs_now(thread);
  return !look->running;
}

static struct look look_around(bool (*visit)(pid_t thread, void* data)) {
  struct look look = {0, false, false};
  each_other_thread(visit, &look);
  return look;
}

static bool none_has_run_since(uint64_t fingerprint) { return look_around(count_runs).fingerprint == fingerprint; }

/* The threads that may not have blocked. */
struct stubborn_threads {
  pid_t threads[MOST_STUBBORN];
  unsigned long long runs[MOST_STUBBORN];
  size_t count;
};

static bool suspect(pid_t thread, void* data) {
  struct stubborn_threads* suspects = data;
  if (is_stubborn(thread)) return true;
  suspects->threads[suspects->count] = thread;
  suspects->runs[suspects->count] = read_schedstat(thread).runs;
  return ++suspects->count < MOST_STUBBORN;
}

/* Reports one of the threads that still run, or that run again and again, and waits for none of them any more. */
static void give_up(unsigned milliseconds) {
  struct stubborn_threads suspects = {.count = 0};
  each_other_thread(suspect, &suspects);
  const struct timespec pause = {0, SUSPECT_MS * 1000000L};
  nanosleep(&pause, NULL);
  pid_t named = 0;
  unsigned others = 0;
  for (size_t i = 0; i < suspects.count; ++i) {
    const pid_t thread = suspects.threads[i];
    if (!runs_now(thread) && read_schedstat(thread).runs == suspects.runs[i]) continue;
    stubborn[stubborn_count++ % MOST_STUBBORN] = thread;
    if (named == 0) {
      named = thread;
    } else {
      ++others;
    }
  }
  if (named == 0) return; /* all have blocked after all */
  char name[64] = "?", more[32] = "";
  read_thread_file(named, "comm", name, sizeof name);
  name[strcspn(name, "\n")] = '\0';
  if (others > 0) snprintf(more, sizeof more, " and %u more", others);
  note(kName,
       "thread %d (%s)%s was still running after %.1f s when the process forked; a lock it held then is held for "
       "ever in the child (MPRUN_QUIET_SECONDS sets the wait, MPRUN_ADAPTERS=-quiet leaves it out)",
       (int)named, name, more, milliseconds / 1e3);
}

static int wait_until_quiet(void* data, int64_t deadline) {
  (void)data;
  (void)deadline; /* quiet_milliseconds() is shorter, and set by the user */
  const uint64_t before = atomic_load(&quiet_fingerprint);
  if (before != 0 && none_has_run_since(before)) return 0;
  const int64_t end = monotonic_ns() + (int64_t)quiet_milliseconds() * 1000000;
  struct look look = look_around(look_at);
  for (long pause_ns = 50000;; pause_ns = pause_ns < 5000000 ? pause_ns * 2 : pause_ns) {
    if (look.fingerprint == 0) return 0;
    if (!look.running && none_has_run_since(look.fingerprint)) {
      if (!look.uncounted) atomic_store(&quiet_fingerprint, look.fingerprint);
      return 0;
    }
    if (monotonic_ns() >= end) {
      give_up(quiet_milliseconds());
      return 0;
    }
    const struct timespec pause = {0, pause_ns};
    nanosleep(&pause, NULL);
    look = look_around(look_at);
  }
}

void register_quiet(void) {
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = wait_until_quiet, .deadline_ms = 3600000, .only_with_threads = 1};
  register_adapter(&hook);
}
