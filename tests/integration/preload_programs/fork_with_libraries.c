/* Opens the libraries named after its first argument, each for itself (RTLD_LOCAL), uses them all, forks, and uses
 * them again in the parent and, if the first argument is `used`, in the child. Ends as the child did. */
#include <dlfcn.h>
#include <string.h>

#include "programs.h"

enum { COUNT = 1000, SUM = 332833500, CHILD_SECONDS = 5 };

typedef long (*function)(long);

static function open_library(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) say(STDERR_FILENO, "%s\n", dlerror());
  require(library != NULL, path);
  void* const symbol = dlsym(library, "sum_of_squares");
  function found;
  memcpy(&found, &symbol, sizeof found);
  require(found != NULL, "sum_of_squares");
  return found;
}

static void use(const function* functions, int count) {
  for (int i = 0; i < count; ++i) require(functions[i](COUNT) == SUM, "the sum");
}

int main(int argc, char** argv) {
  require(argc > 2 && argc < 10, "arguments");
  const int child_uses = strcmp(argv[1], "used") == 0;
  const int count = argc - 2;
  function functions[8];
  for (int i = 0; i < count; ++i) functions[i] = open_library(argv[2 + i]);
  use(functions, count);
  const pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    if (child_uses) use(functions, count);
    exit(0); /* not _exit(): libomp has a file in /dev/shm to remove */
  }
  const int code = wait_for(child);
  use(functions, count);
  return code;
}
