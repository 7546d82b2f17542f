/* In a program with rights of its own (setuid): is mprun's library here, and does fork() work? */
#include <mprun/fork_hooks.h>
#include <sys/auxv.h>

#include "programs.h"

int main(void) {
  if (getauxval(AT_SECURE) == 0) {
    say(STDOUT_FILENO, "not secure\n");
    return 0;
  }
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("nothing");
  const pid_t child = fork();
  if (child == 0) _exit(5);
  require(wait_for(child) == 5, "fork");
  say(STDOUT_FILENO, "%s\n", mprun_add_fork_hook(&hook) == ENOSYS ? "absent" : "present");
  return 0;
}
