/* Two processes with a pipe in each direction; both read before they write. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int down[2], up[2];
  char byte = 'x';
  if (pipe(down) != 0 || pipe(up) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  const int child_side = child == 0;
  const int source = child_side ? down[0] : up[0], sink = child_side ? up[1] : down[1];
  close(child_side ? down[1] : up[1]);
  close(child_side ? up[0] : down[0]);
  if (read(source, &byte, 1) != 1) return 3; /* hangs here */
  if (write(sink, &byte, 1) != 1) return 4;
  if (child_side) return 0;
  waitpid(child, NULL, 0);
  puts("done");
  return 0;
}
