// The signal of a child's end comes before pause() waits for it.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void note_end(int number) {
  (void)number;
  int status = 0;
  if (waitpid(-1, &status, WNOHANG) > 0) ended = 1;
}

int main(void) {
  signal(SIGCHLD, note_end);
  if (fork() == 0) _exit(0);
  while (!ended) usleep(1000);
  pause();  // hangs here
  puts("done");
}
