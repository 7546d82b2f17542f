/* Case 4: a process with two copies of libgomp, as wheels bundle them: its own and one that it opens RTLD_LOCAL
 * from the file it is given; both are used before fork and in the child. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region.h"

typedef void parallel_function(void (*body)(void*), void* data, unsigned threads, unsigned flags);

static parallel_function* copys_parallel; /* GOMP_parallel of the second copy */

static void count_one(void* data) { __atomic_add_fetch((int*)data, 1, __ATOMIC_RELAXED); }

static int run_copys_region(void) {
  int total = 0;
  copys_parallel(count_one, &total, 2, 0);
  return total;
}

static int run_both(void) { return run_region() == REGION_TOTAL && run_copys_region() == REGION_TOTAL; }

int main(int count, char** arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  void* copy = dlopen(count > 1 ? arguments[1] : "", RTLD_NOW | RTLD_LOCAL);
  if (copy == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  *(void**)&copys_parallel = dlsym(copy, "GOMP_parallel");
  void* own = dlsym(RTLD_DEFAULT, "GOMP_parallel");
  if (copys_parallel == NULL || own == (void*)copys_parallel) return 2;
  if (!run_both()) return 3;
  const pid_t child = fork();
  if (child < 0) return 4;
  if (child == 0) {
    puts("second region");
    _exit(run_both() ? 0 : 5);
  }
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0); /* hangs here */
  if (ended != child || status != 0) return 6;
  if (!run_both()) return 7;
  puts("done");
  return 0;
}
