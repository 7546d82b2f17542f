#include "sync_lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sync_types.h"
#include "task_loop.h"

/* Without a watch, a thread that dies between a change and its wake-up wakes no thread: waiters look this often. */
#define LOOK_EVERY 500000000LL

enum { SPINS = 100 };

static int64_t longest_sleep = SYNC_FOREVER;

void sync_limit_sleeps(void) { longest_sleep = LOOK_EVERY; }

/* --- sleeping --- */

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int sync_deadline(PyObject* timeout, int64_t* deadline) {
  *deadline = SYNC_FOREVER;
  if (timeout == NULL || timeout == Py_None) return 0;
  const double seconds = PyFloat_AsDouble(timeout);
  if (seconds == -1.0 && PyErr_Occurred()) return -1;
  if (!(seconds >= 0)) {
    PyErr_SetString(PyExc_ValueError, "a timeout is None or a number of seconds that is not less than 0");
    return -1;
  }
  sync_after(seconds, deadline);
  return 0;
}

void sync_after(double seconds, int64_t* deadline) {
  const double most = 1e9; /* thirty years */
  *deadline = seconds < most ? now_ns() + (int64_t)(seconds * 1e9) : SYNC_FOREVER;
}

/* An errno, or 0. The GIL need not be held. */
static int wait_for_change(uint32_t* word, uint32_t value, int64_t deadline) {
  struct timespec left;
  struct timespec* limit = NULL;
  int64_t rest = longest_sleep;
  if (deadline != SYNC_FOREVER) {
    const int64_t asked = deadline - now_ns();
    if (asked <= 0) return ETIMEDOUT;
    if (asked < rest) rest = asked;
  }
  if (rest != SYNC_FOREVER) {
    left = (struct timespec){rest / 1000000000, rest % 1000000000};
    limit = &left;
  }
  const int error = syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0) == 0 ? 0 : errno;
  if (error == ETIMEDOUT && (deadline == SYNC_FOREVER || now_ns() < deadline)) return 0;
  return error;
}

int sync_sleep(uint32_t* word, uint32_t value, int64_t deadline) {
  int error;
  Py_BEGIN_ALLOW_THREADS;
  error = wait_for_change(word, value, deadline);
  Py_END_ALLOW_THREADS;
  if (error == ETIMEDOUT) return ETIMEDOUT;
  return error == EINTR && PyErr_CheckSignals() < 0 ? -1 : 0;
}

int sync_wake(uint32_t* word, int count) {
  const long woken = syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
  return woken > 0 ? (int)woken : 0;
}

uint32_t sync_announce(uint32_t* sequence) { return __atomic_fetch_or(sequence, 1U, __ATOMIC_SEQ_CST) | 1U; }

/* The bit stays until a wake-up finds no sleeper: several changes may come before the first sleeper runs. A thread that
 * then announces its sleep finds another word, and looks again. */
void sync_notify(uint32_t* sequence) {
  const uint32_t before = __atomic_fetch_add(sequence, 2U, __ATOMIC_SEQ_CST);
  if ((before & 1U) == 0 || sync_wake(sequence, 1) > 0) return;
  uint32_t expected = before + 2U;
  __atomic_compare_exchange_n(sequence, &expected, expected & ~1U, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* --- the holder of a lock --- */

static __thread struct mprun_sync_holder identity; /* of this process; pid 0: not known yet */
static __thread pid_t own_tid;                     /* of the calling thread; 0: not known yet */

static void forget_identity(void) {
  identity.pid = 0;
  own_tid = 0;
}

static int64_t number_in(const char* name) {
  const char* text = getenv(name);
  if (text == NULL || *text == '\0') return -1;
  char* end = NULL;
  const long long number = strtoll(text, &end, 10);
  return *end == '\0' && number >= 0 ? number : -1;
}

static void find_identity(void) {
  static bool at_fork = false;
  if (!__atomic_exchange_n(&at_fork, true, __ATOMIC_RELAXED)) pthread_atfork(NULL, NULL, forget_identity);
  const int64_t rank = number_in("RANK");
  const int64_t worker = number_in("MPRUN_WORKER");
  const bool has_task = task_loop_current.task >= 0 || number_in("MPRUN_TASK") >= 0;
  memset(&identity, 0, sizeof identity);
  identity.role = MPRUN_SYNC_PROCESS;
  if (worker >= 0 && (has_task || rank < 0)) {
    identity.role = MPRUN_SYNC_WORKER;
    identity.number = (int32_t)worker;
  } else if (rank >= 0) {
    identity.role = MPRUN_SYNC_RANK;
    identity.number = (int32_t)rank;
  }
  identity.task = number_in("MPRUN_TASK");
  const int64_t attempt = number_in("MPRUN_ATTEMPT");
  identity.attempt = attempt >= 0 ? (uint32_t)attempt : 0;
  identity.pid = getpid();
}

static void sign(struct mprun_sync_lock* lock) {
  if (identity.pid == 0) find_identity();
  if (own_tid == 0) own_tid = (pid_t)syscall(SYS_gettid);
  struct mprun_sync_holder holder = identity;
  if (task_loop_current.task >= 0) {
    holder.task = task_loop_current.task;
    holder.attempt = task_loop_current.attempt;
  }
  const int32_t pid = holder.pid;
  holder.pid = 0;
  lock->holder = holder;
  __atomic_store_n(&lock->holder.pid, pid, __ATOMIC_RELEASE); /* now it is complete */
}

/* --- taking a lock --- */

/* Marks the word, for the holder, as slept on. Returns the word to sleep on; 0: the lock is free. */
static uint32_t mark_waited_for(uint32_t* word) {
  uint32_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    if (value == 0 || (value & FUTEX_OWNER_DIED) != 0) return 0;
    if ((value & FUTEX_WAITERS) != 0) return value;
    const uint32_t marked = value | FUTEX_WAITERS;
    if (__atomic_compare_exchange_n(word, &value, marked, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return marked;
  }
}

/* Lets the other thread of the core run for some ten nanoseconds. */
static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static int try_lock(pthread_mutex_t* mutex) {
  int failed = pthread_mutex_trylock(mutex);
  for (int i = 0; i < SPINS && failed == EBUSY; ++i) {
    relax();
    if (__atomic_load_n(mprun_sync_word(mutex), __ATOMIC_RELAXED) == 0) failed = pthread_mutex_trylock(mutex);
  }
  return failed;
}

/* 0, EOWNERDEAD, ETIMEDOUT, EDEADLK, another errno of a mutex that was overwritten; -1: a signal handler has raised.
 * `signals`: runs their handlers. pthread's own call cannot be interrupted, and the watch could not judge one with a
 * time limit. */
static int lock_mutex(pthread_mutex_t* mutex, int64_t deadline, bool signals) {
  uint32_t* word = mprun_sync_word(mutex);
  int failed = try_lock(mutex);
  if (failed != EBUSY) return failed;
  int slept = 0;
  while (failed == EBUSY && slept == 0) {
    const uint32_t value = mark_waited_for(word);
    if (value != 0 && signals) {
      slept = sync_sleep(word, value, deadline);
    } else if (value != 0) {
      Py_BEGIN_ALLOW_THREADS;
      wait_for_change(word, value, SYNC_FOREVER);
      Py_END_ALLOW_THREADS;
    }
    if (slept != -1) failed = pthread_mutex_trylock(mutex);
  }
  if (failed != EBUSY) {
    /* Other threads may still sleep, and the word no longer says so. */
    if (failed == 0 || failed == EOWNERDEAD) __atomic_fetch_or(word, FUTEX_WAITERS, __ATOMIC_SEQ_CST);
    return failed;
  }
  if (mark_waited_for(word) == 0) sync_wake(word, 1); /* a wake-up may have come here: pass it on */
  return slept;
}

int sync_acquire(struct mprun_sync_lock* lock, int64_t deadline) {
  const int failed = lock_mutex(&lock->mutex, deadline, true);
  if (failed != 0 && failed != EOWNERDEAD) return failed;
  ++lock->turn;
  if (failed == EOWNERDEAD) {
    lock->dead = lock->holder;
    __atomic_store_n(&lock->dead_turn, lock->turn, __ATOMIC_RELEASE);
  }
  sign(lock);
  return failed == EOWNERDEAD ? pthread_mutex_consistent(&lock->mutex) : 0;
}

bool sync_let_go(struct mprun_sync_lock* lock) {
  const uint32_t word = __atomic_load_n(mprun_sync_word(&lock->mutex), __ATOMIC_RELAXED);
  if (own_tid == 0 || (pid_t)(word & FUTEX_TID_MASK) != own_tid) return false; /* a thread that took it has signed it */
  __atomic_store_n(&lock->holder.pid, 0, __ATOMIC_RELEASE);
  return pthread_mutex_unlock(&lock->mutex) == 0;
}

enum sync_entry sync_enter(struct mprun_sync_lock* lock) {
  const int failed = lock_mutex(&lock->mutex, SYNC_FOREVER, false);
  if (failed == 0) return SYNC_ENTERED;
  return failed == EOWNERDEAD && pthread_mutex_consistent(&lock->mutex) == 0 ? SYNC_RECOVERED : SYNC_DAMAGED;
}

void sync_leave(struct mprun_sync_lock* lock) { (void)pthread_mutex_unlock(&lock->mutex); }
