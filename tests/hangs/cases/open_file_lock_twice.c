/* The same as flock_twice.c with locks of open files (fcntl), of a part of the file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>

static int lock_part(FILE* file) {
  struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 50};
  return fcntl(fileno(file), F_OFD_SETLKW, &part);
}

int main(void) {
  char name[32];
  FILE* const first = tmpfile();
  if (first == NULL) return 1;
  snprintf(name, sizeof name, "/dev/fd/%d", fileno(first));
  FILE* const second = fopen(name, "r+"); /* a second open file, not a copy of the descriptor */
  if (second == NULL || lock_part(first) != 0) return 2;
  lock_part(second); /* hangs here */
  puts("done");
  return 0;
}
