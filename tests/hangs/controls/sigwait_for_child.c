/* Waits by sigwait() for the end of a child that takes its time. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 1;
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  if (fork() == 0) {
    usleep((useconds_t)(seconds * 1e6));
    _exit(0);
  }
  int number;
  if (sigwait(&children, &number) != 0 || wait(NULL) < 0) return 1;
  puts("done");
  return 0;
}
