/* A process locks a file that it has locked already, by another descriptor. */
#include <stdio.h>
#include <sys/file.h>

int main(void) {
  char name[32];
  FILE* const first = tmpfile();
  if (first == NULL) return 1;
  snprintf(name, sizeof name, "/dev/fd/%d", fileno(first));
  FILE* const second = fopen(name, "r+"); /* a second open file, not a copy of the descriptor */
  if (second == NULL || flock(fileno(first), LOCK_EX) != 0) return 2;
  flock(fileno(second), LOCK_EX); /* hangs here */
  puts("done");
  return 0;
}
