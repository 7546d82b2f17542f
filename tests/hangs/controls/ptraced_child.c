/* A child that its parent traces: it rests until the parent lets it go on. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 1;
  usleep((useconds_t)(1e6 * seconds));
  if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0) return 2;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;
  puts("done");
  return 0;
}
