/* A library for LD_PRELOAD: in mprun's own processes, and no other, memory is refused.
 *
 * MEMORY_PROGRAM  the path of the program that it works in
 * MEMORY_PLAN     N:once or N:forever: the N-th allocation of a process fails (those before its fork count), or
 *                 that and all later ones
 * MEMORY_COUNT    a file that gets the number of allocations of each process at its end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static bool is_here;
static unsigned long calls;
static unsigned long wanted;
static bool is_forever;

static bool refused(void) {
  if (!is_here) return false;
  const unsigned long number = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  const bool refuse = wanted != 0 && (number == wanted || (is_forever && number > wanted));
  if (refuse) errno = ENOMEM;
  return refuse;
}

void* malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return refused() ? NULL : __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) { return refused() ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return refused() ? NULL : __libc_memalign(alignment, size); }

int posix_memalign(void** to, size_t alignment, size_t size) {
  if (refused()) return ENOMEM;
  *to = __libc_memalign(alignment, size);
  return *to == NULL ? ENOMEM : 0;
}

__attribute__((constructor)) static void begin(void) {
  char path[4096];
  const char* program = getenv("MEMORY_PROGRAM");
  const char* plan = getenv("MEMORY_PLAN");
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (program == NULL || size <= 0 || (size_t)size != strlen(program) || memcmp(path, program, (size_t)size) != 0)
    return;
  char when[16] = "";
  if (plan != NULL) sscanf(plan, "%lu:%15s", &wanted, when);
  is_forever = strcmp(when, "forever") == 0;
  unsetenv("LD_PRELOAD");
  is_here = true;
}

__attribute__((destructor)) static void end(void) {
  const char* name = getenv("MEMORY_COUNT");
  if (!is_here || name == NULL) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%lu\n", calls);
  const int file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file >= 0 && write(file, text, (size_t)size) < 0) _exit(99);
  close(file);
}
