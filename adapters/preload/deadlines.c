/* The deadlines of this process's threads. Each thread's line of the board that mprun reads holds the one that is due
 * first (core/wire/deadlines.h); the rest is kept here, in memory that a child of fork() finds wiped. */
#include <errno.h>
#include <fcntl.h>
#include <mprun/deadline.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"
#include "wire/deadlines.h"

MPRUN_EXPORT int mprun_deadline_begin(struct mprun_deadline* deadline, double seconds, const char* label);
MPRUN_EXPORT void mprun_deadline_end(struct mprun_deadline* deadline);

enum { LINES = MPRUN_DEADLINES_LINES };

/* The deadlines of the thread that has a line. Another thread may end one of them. */
struct wants {
  atomic_flag busy;
  struct mprun_deadline* first; /* of the list, in no order */
  struct mprun_deadline* shown; /* the one in the line */
};

/* This process: NULL until it has a deadline, or if it cannot have any. */
static struct process {
  atomic_int id; /* 0: fresh, or wiped by fork() */
  atomic_bool warned;
  struct wants wants[LINES];
} * process;
static struct mprun_deadline_board* board;

/* The calling thread. */
static __thread struct {
  int process; /* in which the line was taken; a forked child has no line yet */
  int line;
} own;
static pthread_key_t at_thread_end;

/* --- the board --- */

/* If mprun has ended, the path may name another file: no open may block, and only a board is used. */
static struct mprun_deadline_board* map_board(const char* path) {
  if (path == NULL) return NULL;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  struct stat info;
  void* memory = MAP_FAILED;
  const int seals = fcntl(fd, F_GET_SEALS); /* fails for what is not a memory file */
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
      info.st_size == (off_t)sizeof(struct mprun_deadline_board)) {
    memory = mmap(NULL, sizeof(struct mprun_deadline_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return NULL;
  if (((struct mprun_deadline_board*)memory)->magic == MPRUN_DEADLINES_MAGIC) return memory;
  munmap(memory, sizeof(struct mprun_deadline_board));
  return NULL;
}

static void free_line(struct mprun_deadline_line* line) {
  __atomic_store_n(&line->due, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&line->tid, 0, __ATOMIC_RELEASE);
}

/* Takes a line for the calling thread; -1: there is none. */
static int take_line(void) {
  const int32_t tid = (int32_t)syscall(SYS_gettid);
  for (int pass = 0; pass < 2; ++pass) { /* lines of processes that have died: only if all others are taken */
    for (int i = 0; i < LINES; ++i) {
      struct mprun_deadline_line* line = &board->lines[i];
      int32_t owner = __atomic_load_n(&line->tid, __ATOMIC_ACQUIRE);
      if (owner != 0 && (pass == 0 || kill(line->pid, 0) == 0 || errno != ESRCH)) continue;
      if (!__atomic_compare_exchange_n(&line->tid, &owner, tid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
      __atomic_store_n(&line->due, 0, __ATOMIC_RELEASE);
      __atomic_store_n(&line->pid, getpid(), __ATOMIC_RELEASE);
      uint32_t used = __atomic_load_n(&board->used, __ATOMIC_RELAXED);
      while (used <= (uint32_t)i && !__atomic_compare_exchange_n(&board->used, &used, (uint32_t)i + 1, 0,
                                                                 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      }
      return i;
    }
  }
  return -1;
}

/* --- this process --- */

/* Its deadlines may be ended later, by other threads: they belong to no process then. */
static void leave(void* unused) {
  (void)unused;
  if (own.process != atomic_load(&process->id)) return;
  struct wants* wants = &process->wants[own.line];
  while (atomic_flag_test_and_set(&wants->busy)) sched_yield();
  for (struct mprun_deadline* each = wants->first; each != NULL; each = each->next) each->process = 0;
  wants->first = wants->shown = NULL;
  free_line(&board->lines[own.line]);
  atomic_flag_clear(&wants->busy);
  own.process = 0;
}

static void prepare(void) {
  board = map_board(getenv(MPRUN_DEADLINES_VARIABLE));
  if (board == NULL) return;
  /* Frees the lines of the program that this process ran before exec. */
  const uint32_t used = __atomic_load_n(&board->used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < LINES; ++i) {
    if (board->lines[i].pid == getpid()) free_line(&board->lines[i]);
  }
  void* memory = mmap(NULL, sizeof *process, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  if (madvise(memory, sizeof *process, MADV_WIPEONFORK) != 0 || pthread_key_create(&at_thread_end, leave) != 0) {
    munmap(memory, sizeof *process);
    return;
  }
  process = memory;
}

/* The calling thread's wants; takes a line if it has none. NULL: it cannot have one. */
static struct wants* own_wants(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT; /* glibc resets it in a child that was forked during the call */
  pthread_once(&once, prepare);
  if (process == NULL) return NULL;
  int id = atomic_load_explicit(&process->id, memory_order_relaxed);
  if (id == 0) {
    id = getpid();
    atomic_store(&process->id, id);
  }
  if (own.process != id) {
    own.line = take_line();
    if (own.line < 0) {
      if (!atomic_exchange(&process->warned, true)) {
        note("deadline", "%d threads have deadlines; those of more are not watched", LINES);
      }
      return NULL;
    }
    own.process = id;
    pthread_setspecific(at_thread_end, &own);
  }
  return &process->wants[own.line];
}

/* --- deadlines --- */

static void show(struct mprun_deadline_line* line, struct wants* wants, struct mprun_deadline* deadline) {
  wants->shown = deadline;
  __atomic_store_n(&line->due, 0, __ATOMIC_RELAXED);
  if (deadline == NULL) return;
  __atomic_thread_fence(__ATOMIC_RELEASE); /* a reader that sees a later store sees this one too */
  line->limit = deadline->limit;
  const char* label = deadline->label != NULL ? deadline->label : "";
  if (strncmp(line->label, label, sizeof line->label) != 0) strncpy(line->label, label, sizeof line->label);
  __atomic_store_n(&line->due, deadline->due, __ATOMIC_RELEASE);
}

int mprun_deadline_begin(struct mprun_deadline* deadline, double seconds, const char* label) {
  deadline->process = 0;
  if (!(seconds > 0)) return EINVAL;
  const int saved = errno;
  struct wants* wants = own_wants();
  errno = saved;
  if (wants == NULL) return process == NULL ? ENOSYS : ENOSPC;
  const double most = 1e9; /* thirty years */
  deadline->limit = (int64_t)((seconds < most ? seconds : most) * 1e9);
  if (deadline->limit == 0) deadline->limit = 1;
  deadline->due = monotonic_ns() + deadline->limit;
  deadline->label = label;
  deadline->line = own.line;
  deadline->before = NULL;
  while (atomic_flag_test_and_set_explicit(&wants->busy, memory_order_acquire)) sched_yield();
  deadline->process = own.process;
  deadline->next = wants->first;
  if (wants->first != NULL) wants->first->before = deadline;
  wants->first = deadline;
  if (wants->shown == NULL || deadline->due < wants->shown->due) show(&board->lines[own.line], wants, deadline);
  atomic_flag_clear_explicit(&wants->busy, memory_order_release);
  return 0;
}

void mprun_deadline_end(struct mprun_deadline* deadline) {
  if (process == NULL || deadline->process == 0 || deadline->process != atomic_load(&process->id)) return;
  struct wants* wants = &process->wants[deadline->line];
  while (atomic_flag_test_and_set_explicit(&wants->busy, memory_order_acquire)) sched_yield();
  if (deadline->process != 0) { /* else its thread has just ended */
    deadline->process = 0;
    if (deadline->before != NULL) deadline->before->next = deadline->next;
    if (deadline->before == NULL) wants->first = deadline->next;
    if (deadline->next != NULL) deadline->next->before = deadline->before;
    if (wants->shown == deadline) {
      struct mprun_deadline* soonest = wants->first;
      for (struct mprun_deadline* each = soonest; each != NULL; each = each->next) {
        if (each->due < soonest->due) soonest = each;
      }
      show(&board->lines[deadline->line], wants, soonest);
    }
  }
  atomic_flag_clear_explicit(&wants->busy, memory_order_release);
}
