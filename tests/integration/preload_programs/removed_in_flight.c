/* A hook is removed while another thread's fork is between its two halves, and new ones are registered at once: the
 * fork still calls the other half of the hook that it prepared. */
#include <mprun/fork_hooks.h>
#include <pthread.h>
#include <semaphore.h>

#include "programs.h"

static sem_t prepared, changed;
static int right, wrong;

static int wait_in_prepare(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  sem_post(&prepared);
  while (sem_wait(&changed) != 0) continue;
  return 0;
}

static void count(void* data) { ++*(int*)data; }

static void* fork_once(void* data) {
  const pid_t child = fork();
  if (child == 0) _exit(right == 1 && wrong == 0 ? 0 : 1);
  require(wait_for(child) == 0, "hooks of the child");
  return data;
}

int main(void) {
  alarm(PATIENCE_SECONDS);
  sem_init(&prepared, 0, 0);
  sem_init(&changed, 0, 0);
  struct mprun_fork_hook waits = MPRUN_FORK_HOOK_INIT("waits"), removed = MPRUN_FORK_HOOK_INIT("removed");
  waits.prepare = wait_in_prepare;
  waits.deadline_ms = 60000;
  removed.parent = removed.child = count;
  removed.data = &right;
  require(mprun_add_fork_hook(&waits) == 0 && mprun_add_fork_hook(&removed) == 0, "mprun_add_fork_hook");
  pthread_t forks;
  require(pthread_create(&forks, NULL, fork_once, NULL) == 0, "pthread_create");
  while (sem_wait(&prepared) != 0) continue;
  require(mprun_remove_fork_hook("removed", &right) == 0, "mprun_remove_fork_hook");
  struct mprun_fork_hook late = removed;
  late.data = &wrong;
  int status;
  while ((status = mprun_add_fork_hook(&late)) == 0) continue;
  require(status == ENOSPC, "all other places are taken");
  sem_post(&changed);
  pthread_join(forks, NULL);
  require(right == 1 && wrong == 0, "hooks of the parent");
  require(mprun_add_fork_hook(&late) == 0, "the place is free after the fork");
  return 0;
}
