/* What nobody can see afterwards, told as notes of "history", fields separated by tabs, which core/watch/family.cc
 * reads:
 *
 *     fork   PARENT  THREAD  THREADS    by the child: which thread forked it, and how many the parent had
 *     term   PROCESS                    by one that sent it SIGTERM
 *     end    PROCESS STATUS             by its parent, which has reaped it: it did not end well
 *
 * All are told without waiting: one that is lost costs a cause. */
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

/* Context: child after fork. */
static void tell_in_child(void* data) {
  (void)data;
  note(kName, "fork\t%d\t%d\t%u", (int)forking.parent, (int)forking.thread, forking.threads);
}

void tell_termination(pid_t process) { note(kName, "term\t%d", (int)process); }

void tell_end(pid_t process, int status) { note(kName, "end\t%d\t%d", (int)process, status); }

void register_history(void) {
  if (*notes_address() == '\0') return;
  const struct mprun_fork_hook hook = {.size = sizeof hook, .name = kName, .prepare = remember, .child = tell_in_child};
  register_adapter(&hook);
}
