/* Never forks: writes to both streams, one of them unbuffered, and ends with a code of its own. */
#include <stdio.h>

int main(int argc, char** argv) {
  printf("%d arguments, first %s\n", argc - 1, argc > 1 ? argv[1] : "none");
  fprintf(stderr, "a complaint\n");
  return 43;
}
