/* Hooks around fork() for a runtime with threads or locks of its own. Public C interface of mprun.
 *
 * A library that cannot survive fork() registers what has to happen around it. Under mprun every process of a job
 * runs the hooks at each fork(), from any caller; without mprun, registering does nothing and returns ENOSYS. Nothing
 * has to be linked (dlsym() is in libc since glibc 2.34): mprun's preload library has the functions.
 *
 *     static int stop(void* pool, int64_t deadline) { return pool_stop(pool, deadline) ? 0 : ETIMEDOUT; }
 *     static void start(void* pool) { pool_start(pool); }
 *     ...
 *     struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("mypool");
 *     hook.prepare = stop;
 *     hook.parent = hook.child = start;
 *     hook.data = pool;
 *     mprun_add_fork_hook(&hook);
 *
 * Order: prepare runs in reverse order of registration, parent and child in order of registration. The parent half
 * also runs when fork() fails. A hook whose prepare failed gets neither of the other calls for that fork. Two threads
 * that fork at the same time run the hooks at the same time. A fork() inside a hook runs no hooks.
 */
#ifndef MPRUN_FORK_HOOKS_H
#define MPRUN_FORK_HOOKS_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What happens to a fork whose prepare failed or was late. Either way mprun reports the hook by name. */
enum mprun_fork_verdict {
  MPRUN_FORK_GOES_ON = 0,
  MPRUN_FORK_REFUSED = 1 /* fork() returns -1 with errno EAGAIN after the other hooks were undone */
};

struct mprun_fork_hook {
  size_t size;      /* sizeof(struct mprun_fork_hook): lets the structure grow */
  const char* name; /* copied; for reports, for MPRUN_ADAPTERS=-name and for removal */
  /* Before fork(), on the thread that forks. `deadline`: nanoseconds of CLOCK_MONOTONIC by which it should return.
   * Returns 0, or an errno value. */
  int (*prepare)(void* data, int64_t deadline);
  void (*parent)(void* data); /* after fork() in the parent, also when it failed */
  void (*child)(void* data);  /* after fork() in the child: the only thread there */
  void* data;
  unsigned deadline_ms; /* for prepare; 0: 1000 */
  enum mprun_fork_verdict on_failure;
  int only_with_threads; /* not 0: skip it while the process has only one thread */
};

#define MPRUN_FORK_HOOK_INIT(hook_name) \
  { sizeof(struct mprun_fork_hook), (hook_name), NULL, NULL, NULL, NULL, 0, MPRUN_FORK_GOES_ON, 0 }

/* Registers a copy of `hook`. 0, or EINVAL (no name, wrong size), ENOSPC (64 exist), ENOSYS (not under mprun). */
static inline int mprun_add_fork_hook(const struct mprun_fork_hook* hook) {
  /* By dlsym(), because a weak symbol stays undefined in code that is linked -no-pie. NULL is RTLD_DEFAULT. */
  void* const symbol = dlsym(NULL, "mprun_register_fork_hook");
  int (*add)(const struct mprun_fork_hook*) = NULL;
  memcpy(&add, &symbol, sizeof add);
  return add != NULL ? add(hook) : ENOSYS;
}

/* Removes the hook of this name and data, of several the last registered. Call it before its code is unloaded. A fork
 * that has already prepared it, on another thread or around this call, still calls its other half. 0, or ENOENT,
 * ENOSYS. */
static inline int mprun_remove_fork_hook(const char* name, void* data) {
  void* const symbol = dlsym(NULL, "mprun_unregister_fork_hook");
  int (*remove)(const char*, void*) = NULL;
  memcpy(&remove, &symbol, sizeof remove);
  return remove != NULL ? remove(name, data) : ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
