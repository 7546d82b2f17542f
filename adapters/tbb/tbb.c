/* oneTBB keeps its workers across fork() as if they were there; a child then computes with one thread, or waits for
 * them. tbb::finalize ends them, and the next parallel algorithm on either side starts new ones. It does nothing, and
 * says so, while another thread uses TBB. */
#include <string.h>

#include "preload.h"

enum { FINALIZE_NOTHROWING = 1 }; /* oneapi/tbb/global_control.h */

static const char kName[] = "tbb";

/* tbb::task_scheduler_handle is one pointer. */
struct handle {
  void* control;
};

struct tbb {
  void (*get)(struct handle* handle);
  bool (*finalize)(struct handle* handle, intptr_t mode);
};

static bool look_for_tbb(const struct loaded_object* object, void* data) {
  struct tbb* tbb = data;
  void* get = find_symbol(object, "_ZN3tbb6detail2r13getERNS0_2d121task_scheduler_handleE");
  void* finalize = find_symbol(object, "_ZN3tbb6detail2r18finalizeERNS0_2d121task_scheduler_handleEl");
  if (get == NULL || finalize == NULL) return true;
  memcpy(&tbb->get, &get, sizeof get);
  memcpy(&tbb->finalize, &finalize, sizeof finalize);
  return false;
}

static int end_workers(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  struct tbb tbb = {NULL, NULL};
  each_object(look_for_tbb, &tbb);
  if (tbb.get == NULL) return 0;
  struct handle handle = {NULL};
  tbb.get(&handle);
  if (!tbb.finalize(&handle, FINALIZE_NOTHROWING)) {
    note(kName, "oneTBB was in use when the process forked: a child that uses it computes with one thread");
  }
  return 0;
}

void register_tbb(void) {
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = end_workers, .deadline_ms = 2000, .only_with_threads = 1};
  register_adapter(&hook);
}
