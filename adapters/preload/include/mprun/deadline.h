/* Deadlines: a watchdog around a piece of a thread's work. Public C interface of mprun.
 *
 *     struct mprun_deadline load;
 *     mprun_begin_deadline(&load, 30, "loading shard 7");
 *     ...
 *     mprun_end_deadline(&load);
 *
 * If the work has not ended in time, mprun reports the label and where the thread is, and acts as its --on-hang says.
 * The thread itself is never interrupted, and pays less than 100 ns. A thread may have several deadlines at once, which
 * end in any order. Outside of mprun both functions do nothing. Not for signal handlers. Nothing has to be linked
 * (dlsym() is in libc since glibc 2.34).
 */
#ifndef MPRUN_DEADLINE_H
#define MPRUN_DEADLINE_H

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One deadline, in the caller's memory, which must not move until the end. Its fields belong to mprun. */
struct mprun_deadline {
  struct mprun_deadline *before, *next; /* the others of its thread */
  int64_t due, limit;                   /* nanoseconds; due: CLOCK_MONOTONIC */
  const char* label;
  int32_t process, line;
};

/* A function of the preload library; NULL without mprun. Looked up once. */
static inline void* mprun_find_deadline_function(const char* name, void** found) {
  static char none;
  void* symbol = __atomic_load_n(found, __ATOMIC_ACQUIRE);
  if (symbol == NULL) {
    symbol = dlsym(NULL, name); /* NULL is RTLD_DEFAULT */
    if (symbol == NULL) symbol = &none;
    __atomic_store_n(found, symbol, __ATOMIC_RELEASE);
  }
  return symbol == &none ? NULL : symbol;
}

/* Begins a deadline: the calling thread has to be done in `seconds`, which is more than 0. `label` names the work, in
 * at most 40 bytes; it is not copied, and may be NULL. Returns 0, or EINVAL, ENOSYS (not under mprun), ENOSPC (4095
 * threads have deadlines); the deadline may be ended in any case. */
static inline int mprun_begin_deadline(struct mprun_deadline* deadline, double seconds, const char* label) {
  static void* found;
  void* const symbol = mprun_find_deadline_function("mprun_deadline_begin", &found);
  int (*begin)(struct mprun_deadline*, double, const char*) = NULL;
  memset(deadline, 0, sizeof *deadline);
  if (symbol == NULL) return ENOSYS;
  memcpy(&begin, &symbol, sizeof begin);
  return begin(deadline, seconds, label);
}

/* Ends what mprun_begin_deadline() began, on any thread. A second call, or one in a forked child, does nothing. */
static inline void mprun_end_deadline(struct mprun_deadline* deadline) {
  static void* found;
  void (*end)(struct mprun_deadline*) = NULL;
  void* symbol = NULL;
  if (deadline->process == 0) return;
  symbol = mprun_find_deadline_function("mprun_deadline_end", &found);
  if (symbol == NULL) return;
  memcpy(&end, &symbol, sizeof end);
  end(deadline);
}

#ifdef __cplusplus
}
#endif

#endif
