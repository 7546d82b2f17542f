/* libgomp keeps the forking thread's team of threads across fork() and waits for it in the child, where the team does
 * not exist. omp_pause_resource_all(omp_pause_hard) ends the calling thread's team, and its next region makes a new
 * one; the thread that forks must call it, in every copy of the library that the process holds. Copies older than GCC 9
 * have no such function. LLVM's libomp, which also exports GOMP_parallel, is safe by its own atfork handlers and must
 * never be paused (LLVM pull request 154204). */
#include <stdio.h>
#include <string.h>

#include "clean_thread.h"
#include "preload.h"

/* Old copies take space in every thread, a page each, so only a few are supported. */
enum { MOST_COPIES = 16, MOST_OLD_COPIES = 4, PAUSE_HARD = 2 };

static const char kName[] = "libgomp";

struct copy {
  int (*pause)(int kind); /* NULL: the copy is too old */
  int (*in_parallel)(void);
  int (*max_threads)(void);
  void (*set_threads)(int count);
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
  const struct {
    void* where;
    const char* name;
  } wanted[] = {
      {&copy->pause, "omp_pause_resource_all"},
      {&copy->in_parallel, "omp_in_parallel"},
      {&copy->max_threads, "omp_get_max_threads"},
      {&copy->set_threads, "omp_set_num_threads"},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    void* symbol = find_symbol(object, wanted[i].name);
    memcpy(wanted[i].where, &symbol, sizeof symbol);
  }
  copy->object = *object;
  return copies->count < MOST_COPIES;
}

struct team {
  const struct loaded_object* library;
  bool found;
};

/* A team's thread waits in a system call that libgomp makes itself, so its program counter is in the library. */
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

static __thread bool thread_is_clean;

MPRUN_EXPORT void mprun_declare_clean_thread(void) { thread_is_clean = true; }

MPRUN_EXPORT bool mprun_wants_clean_thread(void) {
  if (!adapter_is_on(kName)) return false;
  struct copies copies = {.count = 0};
  each_object(collect, &copies);
  for (size_t i = 0; i < copies.count; ++i) {
    if (copies.all[i].pause == NULL) return true;
  }
  return false;
}

/* What the child of this thread's fork has to reset. */
static __thread struct {
  struct {
    struct copy copy;
    void* data; /* the library's data of the forking thread */
    int max_threads;
  } all[MOST_OLD_COPIES];
  size_t count;
} resets;

/* For a copy that cannot be paused. The child resets its data of the forking thread to those of a thread that never ran
 * a region, which a fork does not hurt, and leaks the old team. This changes the library's data from outside, so it is
 * reported, once. */
static void plan_reset(const struct copy* copy) {
  if (thread_is_clean) return;
  void* data = find_thread_local_data(&copy->object);
  const bool has_room = resets.count < MOST_OLD_COPIES;
  if (has_room && data != NULL && copy->max_threads != NULL && copy->set_threads != NULL) {
    const size_t last = resets.count++;
    resets.all[last].copy = *copy;
    resets.all[last].data = data;
    resets.all[last].max_threads = copy->max_threads();
  }
  if (!has_team(&copy->object)) return;
  note(kName,
       "%s is too old to end its threads before fork() (GCC before 9: no omp_pause_resource_all); its data were reset "
       "in the child instead. If a child hangs in OpenMP, put libomp in its place: LD_PRELOAD=libomp.so.5 (Debian: "
       "libomp5-14), or use the start method spawn or forkserver",
       copy->object.path);
}

static int end_teams(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  struct copies copies = {.count = 0};
  each_object(collect, &copies);
  resets.count = 0;
  for (size_t i = 0; i < copies.count; ++i) {
    const struct copy* copy = &copies.all[i];
    if (copy->in_parallel != NULL && copy->in_parallel()) {
      note(kName,
           "fork() inside an OpenMP parallel region of %s: the child must not use OpenMP; fork outside of regions",
           copy->object.path);
    } else if (copy->pause == NULL) {
      plan_reset(copy);
    } else if (copy->pause(PAUSE_HARD) != 0) {
      note(kName, "%s would not end its threads before fork()", copy->object.path);
    }
  }
  return 0;
}

static void reset_old_copies(void* data) {
  (void)data;
  for (size_t i = 0; i < resets.count; ++i) {
    reset_thread_local_data(&resets.all[i].copy.object, resets.all[i].data);
    resets.all[i].copy.set_threads(resets.all[i].max_threads); /* libgomp keeps it with the team */
  }
}

void register_libgomp(void) {
  const struct mprun_fork_hook hook = {.size = sizeof hook,
                                       .name = kName,
                                       .prepare = end_teams,
                                       .child = reset_old_copies,
                                       .deadline_ms = 2000,
                                       .only_with_threads = 1};
  register_adapter(&hook);
}
