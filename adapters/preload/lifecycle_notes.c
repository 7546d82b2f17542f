/* Reports what cannot be seen afterwards, as notes of "history" with fields separated by tabs, which
 * core/watch/causes/process_history.cc reads:
 *
 *     fork   PARENT  THREAD  THREADS    by the child: which thread forked it, and how many the parent had
 *     term   PROCESS                    by the process that sent it SIGTERM
 *     end    PROCESS STATUS             by its parent, which has reaped it: it did not exit with 0
 *
 * All are sent without waiting: a lost note costs a cause. */
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

static const char kName[] = "history";

/* The fork that this thread is in. */
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

static size_t add_number(char* text, size_t size, unsigned number) {
  char digits[12];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
  } while ((number /= 10) != 0);
  text[size++] = '\t';
  while (count > 0) text[size++] = digits[--count];
  return size;
}

/* Context: child after fork. Most run another program at once: so no printf(), which is several pages of code. */
static void note_fork(void* data) {
  (void)data;
  char text[64] = "history\nfork";
  size_t size = sizeof "history\nfork" - 1;
  size = add_number(text, size, (unsigned)forking.parent);
  size = add_number(text, size, (unsigned)forking.thread);
  send_note(text, add_number(text, size, forking.threads), false);
}

void note_termination(pid_t process) { note(kName, "term\t%d", (int)process); }

void note_end(pid_t process, int status) { note(kName, "end\t%d\t%d", (int)process, status); }

void register_history(void) {
  if (*notes_address() == '\0') return;
  const struct mprun_fork_hook hook = {.size = sizeof hook, .name = kName, .prepare = remember, .child = note_fork};
  register_adapter(&hook);
}
