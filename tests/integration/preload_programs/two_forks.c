/* Two threads fork at once: each is inside its prepare when the other is, and each gets its own other halves. */
#include <mprun/fork_hooks.h>
#include <pthread.h>

#include "programs.h"

static pthread_barrier_t both;
static __thread int prepared, finished;

static int prepare(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  ++prepared;
  pthread_barrier_wait(&both);
  return 0;
}

static void finish(void* data) {
  (void)data;
  ++finished;
}

static void* fork_once(void* data) {
  const pid_t child = fork();
  if (child == 0) _exit(prepared == 1 && finished == 1 ? 0 : 1);
  require(wait_for(child) == 0, "hooks of the child");
  require(prepared == 1 && finished == 1, "hooks of the parent");
  return data;
}

int main(void) {
  alarm(PATIENCE_SECONDS);
  pthread_barrier_init(&both, NULL, 2);
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("meeting");
  hook.prepare = prepare;
  hook.parent = hook.child = finish;
  hook.deadline_ms = 60000;
  require(mprun_add_fork_hook(&hook) == 0, "mprun_add_fork_hook");
  pthread_t other;
  require(pthread_create(&other, NULL, fork_once, NULL) == 0, "pthread_create");
  fork_once(NULL);
  pthread_join(other, NULL);
  return 0;
}
