/* libgomp keeps the forking thread's team of threads across fork() and waits for it in the child, where it does not
 * exist. omp_pause_resource_all(omp_pause_hard) ends the calling thread's team, and its next region makes a new one;
 * it must be called by the thread that forks, in every copy of the library that the process holds. Copies older than
 * GCC 9 have no such function. LLVM's libomp, which also exports GOMP_parallel, is safe by its own atfork handlers and
 * must never be paused (LLVM pull request 154204). */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "preload.h"

enum { MOST_COPIES = 16, PAUSE_HARD = 2 };

static const char kName[] = "libgomp";

struct copy {
  int (*pause)(int kind); /* NULL: the copy is too old */
  int (*in_parallel)(void);
  struct loaded_object object;
};

struct copies {
  struct copy all[MOST_COPIES];
  size_t count;
};

static bool collect(const struct loaded_object* object, void* data) {
  struct copies* copies = data;
  if (!is_libgomp(object)) return true;
  struct copy* copy = &copies->all[copies->count++];
  void* pause = find_symbol(object, "omp_pause_resource_all");
  void* in_parallel = find_symbol(object, "omp_in_parallel");
  memcpy(&copy->pause, &pause, sizeof pause);
  memcpy(&copy->in_parallel, &in_parallel, sizeof in_parallel);
  copy->object = *object;
  return copies->count < MOST_COPIES;
}

struct team {
  const struct loaded_object* library;
  bool found;
};

/* A thread of a team waits in a system call that libgomp makes itself: its program counter is in there. */
static bool is_team_thread(pid_t thread, void* data) {
  struct team* team = data;
  char text[256];
  if (!read_thread_file(thread, "syscall", text, sizeof text)) return true;
  const char* last = strrchr(text, ' ');
  unsigned long counter = 0;
  if (last != NULL && sscanf(last, "%lx", &counter) == 1) team->found = object_holds(team->library, (void*)counter);
  return !team->found;
}

bool has_team(const struct loaded_object* library) {
  struct team team = {library, false};
  each_other_thread(is_team_thread, &team);
  return team.found;
}

static int end_teams(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  struct copies copies = {.count = 0};
  each_object(collect, &copies);
  for (size_t i = 0; i < copies.count; ++i) {
    const struct copy* copy = &copies.all[i];
    if (copy->in_parallel != NULL && copy->in_parallel()) {
      note(kName,
           "fork() inside an OpenMP parallel region of %s: the child must not use OpenMP; fork outside of regions",
           copy->object.path);
    } else if (copy->pause != NULL) {
      if (copy->pause(PAUSE_HARD) != 0) note(kName, "%s would not end its threads before fork()", copy->object.path);
    } else if (has_team(&copy->object)) {
      note(kName,
           "%s is too old to be made safe before fork() (no omp_pause_resource_all, GCC before 9): a child that "
           "uses OpenMP may hang; install libomp5, or use the start method spawn or forkserver",
           copy->object.path);
    }
  }
  return 0;
}

void register_libgomp(void) {
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = end_teams, .deadline_ms = 2000, .only_with_threads = 1};
  register_adapter(&hook);
}
