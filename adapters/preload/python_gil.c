/* Holds the GIL across every fork of a thread that Python knows, and runs the interpreter's own fork functions even
 * where a C extension calls fork() directly. os.fork and its relatives do both themselves. Without this the child would
 * wait for a GIL whose holder does not exist there. A thread that Python does not know forks as without mprun. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

static const char kName[] = "python";

/* What is used of the C API. A process has one interpreter library. */
struct python {
  const void* module; /* an address inside the object that has the interpreter */
  int (*is_initialized)(void);
  int (*is_finalizing)(void);
  void* (*thread_state)(void); /* of the calling thread; NULL: Python does not know it */
  int (*gil_check)(void);      /* whether the calling thread has the GIL */
  int (*gil_ensure)(void);
  void (*gil_release)(int);
  void (*before_fork)(void);
  void (*after_fork_parent)(void);
  void (*after_fork_child)(void);
  void* (*import_module)(const char*);
  void* (*call_method)(void*, const char*, const char*, ...);
  int (*is_true)(void*);
  void (*decref)(void*);
  void (*error_fetch)(void**, void**, void**);
  void (*error_restore)(void*, void*, void*);
  const int* ignores_environment; /* -E and -I; NULL in versions without */
  const int* leaves_out_site;     /* -S */
};

static struct python python;
static uint64_t generation = UINT64_MAX; /* of the loaded objects, when they were searched */

/* What the prepare of this thread did, for its other half. */
static __thread struct {
  bool ensured, interpreter_notified;
  int gil_state;
} held;

static bool look_for_python(const struct loaded_object* object, void* data) {
  struct python* found = data;
  void* before = find_symbol(object, "PyOS_BeforeFork");
  if (before == NULL) return true;
  found->module = before;
  const struct {
    void* where;
    const char* name;
  } wanted[] = {
      {&found->is_initialized, "Py_IsInitialized"},
      {&found->thread_state, "PyGILState_GetThisThreadState"},
      {&found->gil_check, "PyGILState_Check"},
      {&found->gil_ensure, "PyGILState_Ensure"},
      {&found->gil_release, "PyGILState_Release"},
      {&found->before_fork, "PyOS_BeforeFork"},
      {&found->after_fork_parent, "PyOS_AfterFork_Parent"},
      {&found->after_fork_child, "PyOS_AfterFork_Child"},
      {&found->import_module, "PyImport_ImportModule"},
      {&found->call_method, "PyObject_CallMethod"},
      {&found->is_true, "PyObject_IsTrue"},
      {&found->decref, "Py_DecRef"},
      {&found->error_fetch, "PyErr_Fetch"},
      {&found->error_restore, "PyErr_Restore"},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    void* symbol = find_symbol(object, wanted[i].name);
    if (symbol == NULL) found->module = NULL;
    memcpy(wanted[i].where, &symbol, sizeof symbol);
  }
  void* finalizing = find_symbol(object, "Py_IsFinalizing"); /* 3.13 */
  if (finalizing == NULL) finalizing = find_symbol(object, "_Py_IsFinalizing");
  memcpy(&found->is_finalizing, &finalizing, sizeof finalizing);
  found->ignores_environment = find_symbol(object, "Py_IgnoreEnvironmentFlag");
  found->leaves_out_site = find_symbol(object, "Py_NoSiteFlag");
  return false;
}

static void find_python(void) {
  const uint64_t now = objects_generation();
  if (now == generation) return;
  struct python found = {.module = NULL};
  each_object(look_for_python, &found);
  python = found;
  generation = now;
}

bool python_leaves_adapters_out(void) {
  find_python();
  const bool ignores = python.ignores_environment != NULL && *python.ignores_environment != 0;
  const bool no_site = python.leaves_out_site != NULL && *python.leaves_out_site != 0;
  return ignores || no_site;
}

static void warn_of_missing_adapters(void) {
  static bool warned;
  if (warned || !python_leaves_adapters_out()) return;
  warned = true;
  note(kName,
       "a Python started with -I, -E or -S forks without the adapters for torch, MindSpore and OpenCV; those for "
       "C libraries are there");
}

struct search {
  const void* address;
  bool is_pythons;
};

static bool look_for_caller(const struct loaded_object* object, void* data) {
  struct search* search = data;
  if (!object_holds(object, search->address)) return true;
  const char* slash = strrchr(object->path, '/');
  const char* name = slash != NULL ? slash + 1 : object->path;
  search->is_pythons = object_holds(object, python.module) || strncmp(name, "_posixsubprocess", 16) == 0;
  return false;
}

/* True if CPython itself called fork() (os.fork, subprocess): it prepares its own forks. */
static bool is_pythons_own_fork(void) {
  struct search search = {fork_caller(), false};
  if (search.address != NULL) each_object(look_for_caller, &search);
  return search.is_pythons;
}

/* True if the import lock is held: since this thread has the GIL, PyOS_BeforeFork ran for this very fork. */
static bool interpreter_knows(void) {
  void *type, *value, *traceback;
  bool known = false;
  python.error_fetch(&type, &value, &traceback);
  void* imp = python.import_module("_imp");
  if (imp != NULL) {
    void* locked = python.call_method(imp, "lock_held", NULL);
    if (locked != NULL) {
      known = python.is_true(locked) == 1;
      python.decref(locked);
    }
    python.decref(imp);
  }
  python.error_restore(type, value, traceback);
  return known;
}

/* Threads that still wait for the GIL, and whether one of them was given up. */
static atomic_int asking;
static atomic_bool given_up;

static void* ask(void* unused) {
  python.gil_release(python.gil_ensure());
  atomic_fetch_sub(&asking, 1);
  syscall(SYS_futex, &asking, FUTEX_WAKE_PRIVATE, INT_MAX);
  return unused;
}

/* False: a thread still asks at the deadline. pthread_clockjoin_np() came with glibc 2.31. */
static bool wait_for_answers(int64_t deadline) {
  const struct timespec until = {deadline / 1000000000, deadline % 1000000000};
  int left = 0;
  while ((left = atomic_load(&asking)) != 0) {
    const int wait = FUTEX_WAIT_BITSET_PRIVATE; /* `until` is a time of CLOCK_MONOTONIC */
    const long failed = syscall(SYS_futex, &asking, wait, left, &until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (failed != 0 && errno == ETIMEDOUT) return false;
  }
  return true;
}

/* Starts a thread that takes the GIL and releases it: no function of Python waits for it with a limit, and its holder
 * may itself wait for the thread that forks. 0, or an errno. */
static int start_asking(pthread_t* thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(thread, NULL, ask, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

/* True if the GIL becomes free before the deadline. */
static bool gil_comes_free(int64_t deadline) {
  if (python.gil_check() || thread_count() == 1) return true;
  if (atomic_load(&asking) == 0) atomic_store(&given_up, false);
  if (atomic_load(&given_up)) return false;
  pthread_t thread;
  atomic_fetch_add(&asking, 1);
  if (start_asking(&thread) != 0) {
    atomic_fetch_sub(&asking, 1);
    return false;
  }
  if (wait_for_answers(deadline)) {
    pthread_join(thread, NULL);
    return true;
  }
  atomic_store(&given_up, true);
  pthread_detach(thread);
  return false;
}

static int hold_gil(void* data, int64_t deadline) {
  (void)data;
  held.ensured = held.interpreter_notified = false;
  find_python();
  if (python.module == NULL || !python.is_initialized()) return 0;
  warn_of_missing_adapters();
  if (is_pythons_own_fork()) return 0;
  if (python.is_finalizing != NULL && python.is_finalizing()) return 0;
  if (python.thread_state() == NULL) return 0;
  if (!gil_comes_free(deadline)) {
    note(kName, "a thread forked while another held the GIL and did not let go of it: the child must not use Python");
    return 0;
  }
  held.gil_state = python.gil_ensure();
  held.ensured = true;
  if (!interpreter_knows()) {
    python.before_fork();
    held.interpreter_notified = true;
  }
  return 0;
}

static void release(void (*notify)(void)) {
  if (!held.ensured) return;
  if (held.interpreter_notified) notify();
  python.gil_release(held.gil_state);
}

static void release_in_parent(void* data) {
  (void)data;
  release(python.after_fork_parent);
}

static void release_in_child(void* data) {
  (void)data;
  atomic_store(&asking, 0); /* those threads do not exist here */
  release(python.after_fork_child);
}

void register_python(void) {
  const struct mprun_fork_hook hook = {.size = sizeof hook,
                                       .name = kName,
                                       .prepare = hold_gil,
                                       .parent = release_in_parent,
                                       .child = release_in_child,
                                       .deadline_ms = 2000};
  register_adapter(&hook);
}
