/* The minimum cost of a file of tensors: one process writes COUNT times the same SIZE bytes to a new file. The
 * reference for tests/bench/tensors.py.
 *
 *     write_rows FILE SIZE COUNT [sync]      sync: ends when the bytes are on the disk, as a job does
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes all of it; returns 0, or -1 with errno. */
static int write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    bytes += written;
    size -= (size_t)written;
  }
  return 0;
}

int main(int argc, char** argv) {
  const int sync = argc == 5 && strcmp(argv[4], "sync") == 0;
  const long size = argc == 4 || sync ? atol(argv[2]) : 0;
  const long count = argc == 4 || sync ? atol(argv[3]) : 0;
  if (size <= 0 || count <= 0) {
    fprintf(stderr, "usage: write_rows FILE SIZE COUNT [sync]\n");
    return 2;
  }
  char* row = malloc((size_t)size);
  const int fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int failed = row == NULL || fd < 0;
  if (!failed) memset(row, 1, (size_t)size);
  for (long number = 0; number < count && !failed; ++number) failed = write_all(fd, row, (size_t)size) != 0;
  if (!failed && sync) failed = fdatasync(fd) != 0;
  if (failed) fprintf(stderr, "write_rows: %s: %s\n", argv[1], strerror(errno));
  free(row);
  return failed;
}
