/* Objects that the processes of a job share by name: counters, locks, barriers, queues and dicts, in one memory that
 * mprun made and that lives as long as the job. The processes change it (adapters/python/extension/sync_*.c); mprun
 * reads it (sync_segment.h) and trusts nothing in it. Plain C; one build, one machine.
 *
 * Every change is committed by one aligned 8-byte store under a robust lock, so that a death at any instruction leaves
 * either the old or the new state; what was allocated for a change that was never committed is lost until the job ends.
 * References are offsets from the beginning of the memory; 0 is none. */
#ifndef MPRUN_WIRE_SYNC_H
#define MPRUN_WIRE_SYNC_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

/* Processes find the path of the memory in this variable. */
#define MPRUN_SYNC_VARIABLE "MPRUN_SYNC"
#define MPRUN_SYNC_MAGIC 0x4d505331U
#define MPRUN_SYNC_BYTES (256ULL << 20U) /* of address space; only touched pages use memory */
#define MPRUN_SYNC_LEAST_BYTES (1ULL << 20U)
#define MPRUN_SYNC_NAMES 1024U
#define MPRUN_SYNC_NAME 112U
#define MPRUN_SYNC_MOST_PARTIES 4096U
#define MPRUN_SYNC_CLASSES 96U

/* Kinds of objects. */
#define MPRUN_SYNC_COUNTER 1U
#define MPRUN_SYNC_LOCK 2U
#define MPRUN_SYNC_BARRIER 3U
#define MPRUN_SYNC_QUEUE 4U
#define MPRUN_SYNC_DICT 5U

/* The role of a process in the job. */
#define MPRUN_SYNC_PROCESS 0U
#define MPRUN_SYNC_WORKER 1U
#define MPRUN_SYNC_RANK 2U

struct mprun_sync_holder {
  int32_t pid; /* 0: none */
  uint32_t role;
  int32_t number; /* of the worker or rank */
  uint32_t attempt;
  int64_t task; /* -1: none */
};

/* A robust mutex of glibc, shared between processes. Its first 32 bits are the lock word of the kernel's robust
 * futexes: the thread that holds it, FUTEX_WAITERS, FUTEX_OWNER_DIED (struct __pthread_mutex_s in glibc's
 * bits/struct_mutex.h; Documentation/locking/robust-futex-ABI.rst of the kernel). */
struct mprun_sync_lock {
  pthread_mutex_t mutex;
  uint64_t turn;                   /* how often it was taken */
  uint64_t dead_turn;              /* the turn of the process that took it from `dead` */
  struct mprun_sync_holder holder; /* written after it was taken, cleared before it is released */
  struct mprun_sync_holder dead;   /* the last process that ended while it held it */
};

struct mprun_sync_counter {
  int64_t value;
};

/* A waiter at a barrier. While a living thread holds the lock, the seat is taken. */
struct mprun_sync_seat {
  pthread_mutex_t taken;
  uint32_t generation; /* for which it waits */
  uint32_t index;      /* in order of arrival */
  uint32_t broken;     /* whether that generation ended broken for it, once it has ended */
  uint32_t unused;
};

struct mprun_sync_barrier {
  struct mprun_sync_lock lock;
  uint32_t parties;
  uint32_t seat_count;
  uint32_t generation; /* a futex: waiters sleep until it changes */
  uint32_t broken;
  /* the seats follow */
};

/* A sequence word: bit 0 says that a thread sleeps on it, the rest counts changes. */
struct mprun_sync_queue {
  struct mprun_sync_lock lock;
  uint64_t first, last; /* items; `last` means nothing while `first` is 0 */
  uint64_t count;
  uint64_t most;  /* items that fit; 0: no limit */
  uint32_t items; /* sequence word: an item was added */
  uint32_t room;  /* sequence word: an item was removed */
};

struct mprun_sync_dict {
  struct mprun_sync_lock lock;
  uint64_t table;
  uint64_t count; /* of keys */
  uint64_t used;  /* slots of the table that are not 0 */
  uint64_t serial;
};

struct mprun_sync_name {
  uint32_t kind;
  uint32_t unused;
  uint64_t body;
  char name[MPRUN_SYNC_NAME]; /* UTF-8, ends with a NUL */
};

struct mprun_sync {
  uint32_t magic;
  uint32_t used; /* of the names; written last */
  uint64_t size;
  struct mprun_sync_lock lock; /* of what follows */
  uint64_t end;                /* nothing was ever allocated from here on */
  uint64_t free[MPRUN_SYNC_CLASSES];
  struct mprun_sync_name names[MPRUN_SYNC_NAMES];
};

/* Makes a lock in zeroed memory. 0, or an errno; with glibc, and a kernel that has robust futexes, always 0. */
static inline int mprun_sync_make_mutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  int failed = pthread_mutexattr_init(&attributes);
  if (failed == 0) {
    failed = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (failed == 0) failed = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (failed == 0) failed = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    if (failed == 0) failed = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  return failed;
}

/* Initializes a zeroed memory of `size` bytes. 0, or an errno. */
static inline int mprun_sync_make(struct mprun_sync* memory, uint64_t size) {
  const int failed = mprun_sync_make_mutex(&memory->lock.mutex);
  if (failed != 0) return failed;
  memory->size = size;
  memory->end = (sizeof *memory + 63U) & ~63ULL;
  __atomic_store_n(&memory->magic, MPRUN_SYNC_MAGIC, __ATOMIC_RELEASE);
  return 0;
}

/* The word of a lock that a futex waits on. */
static inline uint32_t* mprun_sync_word(pthread_mutex_t* mutex) { return (uint32_t*)(void*)mutex; }

#endif /* MPRUN_WIRE_SYNC_H */
