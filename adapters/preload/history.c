/* What nobody can see afterwards, told as notes of "history", fields separated by tabs, which core/watch/family.cc
 * reads:
 *
 *     fork   PARENT  THREAD  THREADS    by the child: which thread forked it, and how many the parent had
 *     alarm                             by a process that will get a signal by a clock, once
 *     term   PROCESS                    by one that sent it SIGTERM
 *     end    PROCESS STATUS             by its parent, which has reaped it: it did not end well
 *
 * A fork is told without waiting: one that is lost costs a cause. A lost alarm would cost the proof its truth, so that
 * one waits for room. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

static const char kName[] = "history";

/* Of the fork that this thread is in. */
static __thread struct {
  pid_t parent, thread;
  unsigned threads;
} forking;

static int remember(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  forking.parent = getpid();
  forking.thread = (pid_t)syscall(SYS_gettid);
  forking.threads = thread_count();
  return 0;
}

/* The process that has told of an alarm: its number, because a child of vfork() shares our memory. */
static _Atomic pid_t alarm_told;

/* Context: child after fork. */
static void tell_in_child(void* data) {
  (void)data;
  atomic_store(&alarm_told, 0);
  note(kName, "fork\t%d\t%d\t%u", (int)forking.parent, (int)forking.thread, forking.threads);
}

void tell_alarm(void) {
  const pid_t self = getpid();
  if (atomic_load(&alarm_told) != self && tell(kName, "alarm")) atomic_store(&alarm_told, self);
}

void tell_termination(pid_t process) { note(kName, "term\t%d", (int)process); }

void tell_end(pid_t process, int status) { note(kName, "end\t%d\t%d", (int)process, status); }

void register_history(void) {
  if (*notes_address() == '\0') return;
  const struct mprun_fork_hook hook = {.size = sizeof hook, .name = kName, .prepare = remember, .child = tell_in_child};
  register_adapter(&hook);
}
