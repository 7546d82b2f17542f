/* What registering and removing return, and that removed hooks make room for new ones. */
#define _GNU_SOURCE
#include <mprun/fork_hooks.h>
#include <string.h>

#include "programs.h"

static int calls;
static void count(void* data) {
  (void)data;
  ++calls;
}

static int add(const char* name, size_t size) {
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT(name);
  hook.size = size;
  hook.parent = count;
  return mprun_add_fork_hook(&hook);
}

int main(void) {
  const size_t size = sizeof(struct mprun_fork_hook);
  require(add("x", size - 1) == EINVAL && add("x", size + 8) == EINVAL && add("x", 0) == EINVAL, "wrong size");
  require(add(NULL, size) == EINVAL && add("", size) == EINVAL, "no name");
  require(mprun_add_fork_hook(NULL) == EINVAL, "no hook");
  require(mprun_remove_fork_hook("x", NULL) == ENOENT && mprun_remove_fork_hook(NULL, NULL) == ENOENT, "not there");
  require(add("kept", size) == 0, "first");
  require(mprun_remove_fork_hook("kept", &calls) == ENOENT, "other data");
  /* Two libraries, loaded and unloaded alternately: one of them is always there. */
  require(add("library 1", size) == 0, "library");
  for (int i = 0; i < 1000; ++i) {
    require(add(i % 2 ? "library 1" : "library 2", size) == 0, "reused room");
    require(mprun_remove_fork_hook(i % 2 ? "library 2" : "library 1", NULL) == 0, "removed");
  }
  require(mprun_remove_fork_hook("library 1", NULL) == 0, "removed");
  int status = 0, added = 0;
  for (; (status = add("many", size)) == 0; ++added) require(added < 64, "an end");
  const pid_t child = fork();
  if (child == 0) _exit(0);
  require(wait_for(child) == 0, "child");
  for (int i = 0; i < added; ++i) require(mprun_remove_fork_hook("many", NULL) == 0, "removed");
  require(mprun_remove_fork_hook("many", NULL) == ENOENT, "none left");
  require(add("a name that is longer than a registered name can be", size) == 0, "long name");
  require(mprun_remove_fork_hook("a name that is longer than a registered name can be", NULL) == 0, "long name");
  say(STDOUT_FILENO, "%s after %d hooks, %d called\n", strerrorname_np(status), added, calls);
  return 0;
}
