/* One thread registers and removes hooks without end while another forks: every child can still register. */
#include <mprun/fork_hooks.h>
#include <pthread.h>

#include "programs.h"

static void* come_and_go(void* data) {
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("comes and goes");
  for (;;) {
    mprun_add_fork_hook(&hook);
    mprun_remove_fork_hook(hook.name, NULL);
  }
  return data;
}

int main(void) {
  pthread_t other;
  require(pthread_create(&other, NULL, come_and_go, NULL) == 0, "pthread_create");
  for (int i = 0; i < 500; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(PATIENCE_SECONDS);
      struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("of the child");
      _exit(mprun_add_fork_hook(&hook));
    }
    require(wait_for(child) == 0, "the child registers");
  }
  return 0;
}
