/* Asynchronous I/O (aio(7)): a read of a pipe, to which a child writes when it has slept enough. */
#include <aio.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    usleep((useconds_t)(1e6 * seconds));
    _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
  }
  struct aiocb request = {.aio_fildes = ends[0], .aio_buf = &byte, .aio_nbytes = 1};
  const struct aiocb* const requests[] = {&request};
  if (aio_read(&request) != 0) return 3;
  while (aio_error(&request) == EINPROGRESS) aio_suspend(requests, 1, NULL);
  if (aio_return(&request) != 1 || waitpid(child, NULL, 0) != child) return 4;
  puts("done");
  return 0;
}
