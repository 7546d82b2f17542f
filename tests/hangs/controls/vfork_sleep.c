/* A child by vfork sleeps before it executes another program; its parent cannot go on before. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  int status = 0;
  const pid_t child = vfork();
  if (child == 0) {
    nanosleep(&pause, NULL);
    execlp("true", "true", (char*)NULL);
    _exit(1);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  puts("done");
  return 0;
}
