/* Robust locks between the processes of a job, and waiting for a word of memory to change. When a holder dies, the
 * kernel lets the next thread in. A thread waits without the GIL, handles signals, and, unless a time limit is given,
 * waits in one endless futex call, which mprun's watch can judge. */
#ifndef MPRUN_EXTENSION_SYNC_LOCK_H
#define MPRUN_EXTENSION_SYNC_LOCK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "sync/sync.h"

#define SYNC_FOREVER INT64_MAX

/* `timeout`: a number of seconds, or None. Writes when it ends (CLOCK_MONOTONIC, ns) or SYNC_FOREVER. -1: an exception
 * is set. */
int sync_deadline(PyObject* timeout, int64_t* deadline);

void sync_after(double seconds, int64_t* deadline);

/* Takes a lock for the program: 0; ETIMEDOUT; EDEADLK: the thread has it; another errno: it is no lock any more; -1: a
 * signal handler has raised. A holder that died with it is in `lock->dead` afterwards. */
__attribute__((warn_unused_result)) int sync_acquire(struct mprun_sync_lock* lock, int64_t deadline);
/* False: the calling thread does not have it. */
bool sync_let_go(struct mprun_sync_lock* lock);

/* The outcome of sync_enter(). */
enum sync_entry {
  SYNC_DAMAGED, /* the lock was overwritten, and is not held: sync_damaged() */
  SYNC_ENTERED,
  SYNC_RECOVERED /* the same, but its last holder died in the middle of its work */
};

/* Takes a lock that is only held briefly; signals wait. */
__attribute__((warn_unused_result)) enum sync_entry sync_enter(struct mprun_sync_lock* lock);
/* Releases a lock that is held. One that was overwritten meanwhile stays as it is: the next sync_enter() finds that. */
void sync_leave(struct mprun_sync_lock* lock);

/* From now on no sleep takes longer than half a second: without mprun's watch, a process that dies wakes no waiters. */
void sync_limit_sleeps(void);

/* Sleeps while the word has the value. 0: it may have another one now; ETIMEDOUT; -1: a signal handler has raised. GIL
 * held; it is released meanwhile. */
int sync_sleep(uint32_t* word, uint32_t value, int64_t deadline);
/* Wakes up to `count` of the threads that sleep; returns how many. */
int sync_wake(uint32_t* word, int count);

/* Announces in a sequence word (struct mprun_sync_queue) a sleep of the caller; returns what to sleep on. */
uint32_t sync_announce(uint32_t* sequence);
/* Notifies one of the threads that sleep of a change. */
void sync_notify(uint32_t* sequence);

#endif
