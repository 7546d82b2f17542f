// Waits by sigwait() for the end of a child that reads a pipe which this process has not closed.
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

int main(void) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    close(ends[1]);
    char byte;
    _exit((int)read(ends[0], &byte, 1));
  }
  int number;
  return sigwait(&children, &number);
}
