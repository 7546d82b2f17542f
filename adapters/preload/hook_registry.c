/* The hooks of this process and how they run around one fork. Slots are only ever appended, and a fork keeps its
 * own state, so that threads may fork and register at once with no lock held over a hook. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "preload.h"

enum { MOST_HOOKS = 64, MOST_NAME = 32, DEFAULT_DEADLINE_MS = 1000 };

struct slot {
  struct mprun_fork_hook hook;
  char name[MOST_NAME];
  atomic_bool live;
};

static struct slot slots[MOST_HOOKS]; /* in the order of registration */
static atomic_size_t slot_count;
static pthread_mutex_t appending = PTHREAD_MUTEX_INITIALIZER;

MPRUN_EXPORT int mprun_register_fork_hook(const struct mprun_fork_hook* hook) {
  if (hook == NULL || hook->size != sizeof *hook || hook->name == NULL || *hook->name == '\0') return EINVAL;
  pthread_mutex_lock(&appending);
  const size_t count = atomic_load(&slot_count);
  if (count < MOST_HOOKS) {
    struct slot* slot = &slots[count];
    slot->hook = *hook;
    strncpy(slot->name, hook->name, MOST_NAME - 1);
    slot->hook.name = slot->name;
    atomic_store(&slot->live, true);
    atomic_store(&slot_count, count + 1);
  }
  pthread_mutex_unlock(&appending);
  return count < MOST_HOOKS ? 0 : ENOSPC;
}

MPRUN_EXPORT int mprun_unregister_fork_hook(const char* name, void* data) {
  for (size_t i = atomic_load(&slot_count); i-- > 0;) {
    if (atomic_load(&slots[i].live) && slots[i].hook.data == data && strncmp(slots[i].name, name, MOST_NAME - 1) == 0) {
      atomic_store(&slots[i].live, false);
      return 0;
    }
  }
  return ENOENT;
}

void register_adapter(const struct mprun_fork_hook* hook) { mprun_register_fork_hook(hook); }

/* Runs one prepare; true if the hook now needs its other half. `*refused` is set if the fork must not happen. */
static bool prepare_one(const struct mprun_fork_hook* hook, bool* refused) {
  const unsigned allowed_ms = hook->deadline_ms != 0 ? hook->deadline_ms : DEFAULT_DEADLINE_MS;
  const int64_t start = monotonic_ns();
  const int64_t deadline = start + (int64_t)allowed_ms * 1000000;
  const int status = hook->prepare != NULL ? hook->prepare(hook->data, deadline) : 0;
  const int64_t end = monotonic_ns();
  /* A hook that waits until its deadline is a little late by nature. */
  const bool late = end > deadline + 100000000;
  const bool refuses = hook->on_failure == MPRUN_FORK_REFUSED && (status != 0 || late);
  const char* outcome = refuses ? "the fork is refused" : "the fork goes on";
  if (status != 0) {
    note(hook->name, "the fork hook \"%s\" failed: %s; %s", hook->name, strerrordesc_np(status), outcome);
  } else if (late) {
    note(hook->name, "the fork hook \"%s\" was late: it took %.1f s of %.1f s; %s", hook->name,
         (double)(end - start) / 1e9, allowed_ms / 1e3, outcome);
  }
  if (refuses) *refused = true;
  return status == 0;
}

bool prepare_hooks(struct fork_in_flight* fork, bool may_refuse) {
  fork->prepared = 0;
  const bool threads = thread_count() > 1;
  bool refused = false;
  for (size_t i = atomic_load(&slot_count); i-- > 0 && !(refused && may_refuse);) {
    const struct slot* slot = &slots[i];
    if (!atomic_load(&slot->live) || (slot->hook.only_with_threads && !threads) || !adapter_is_on(slot->name)) continue;
    if (prepare_one(&slot->hook, &refused)) fork->prepared |= (uint64_t)1 << i;
  }
  if (!refused || !may_refuse) return true;
  parent_hooks(fork);
  return false;
}

static void other_half(const struct fork_in_flight* fork, bool in_child) {
  for (size_t i = 0; i < MOST_HOOKS && fork->prepared >> i != 0; ++i) {
    if ((fork->prepared >> i & 1) == 0) continue;
    const struct mprun_fork_hook* hook = &slots[i].hook;
    void (*half)(void*) = in_child ? hook->child : hook->parent;
    if (half != NULL) half(hook->data);
  }
}

void parent_hooks(const struct fork_in_flight* fork) { other_half(fork, false); }
void child_hooks(const struct fork_in_flight* fork) { other_half(fork, true); }
