/* A child writes more than its pipe holds, and its parent waits for its end. If the write is interrupted, it returns
   what it has written so far; the stack of its caller cannot be read without the frame pointer. */
#include <alloca.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_much(int to, volatile size_t size) {
  char* text = alloca(size);
  memset(text, 'x', size);
  if (write(to, text, size) < 0) _exit(3);
}

int main(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    close(ends[0]);
    write_much(ends[1], 1000000);
    return 0;
  }
  close(ends[1]);
  waitpid(child, NULL, 0); /* hangs here */
  puts("done");
  return 0;
}
