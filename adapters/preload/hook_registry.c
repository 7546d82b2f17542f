/* The fork hooks of this process, and how they run around one fork. No lock is held while a hook runs, so threads may
 * fork and register at once: a fork holds the slots it has called until it has called their other half, and a slot is
 * reused when its hook was removed and no fork holds it. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "preload.h"

enum { MOST_NAME = 32, DEFAULT_DEADLINE_MS = 1000 };

struct slot {
  struct mprun_fork_hook hook;
  char name[MOST_NAME];
  atomic_ulong number; /* of the registration, from 1; 0: no hook. Written last */
  atomic_uint forks;   /* that hold the slot */
};

static struct slot slots[MOST_FORK_HOOKS];
static atomic_uint slots_used; /* later ones are never touched: a child would get a page of its own */
static unsigned long registrations;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; /* protects the slots' hooks and numbers */

int mprun_register_fork_hook(const struct mprun_fork_hook* hook) {
  if (hook == NULL || hook->size != sizeof *hook || hook->name == NULL || *hook->name == '\0') return EINVAL;
  int status = ENOSPC;
  pthread_mutex_lock(&changing);
  for (size_t i = 0; i < MOST_FORK_HOOKS && status != 0; ++i) {
    struct slot* slot = &slots[i];
    if (atomic_load(&slot->number) != 0 || atomic_load(&slot->forks) != 0) continue;
    slot->hook = *hook;
    strncpy(slot->name, hook->name, MOST_NAME - 1);
    slot->hook.name = slot->name;
    atomic_store(&slot->number, ++registrations);
    if (i >= atomic_load(&slots_used)) atomic_store(&slots_used, (unsigned)i + 1);
    status = 0;
  }
  pthread_mutex_unlock(&changing);
  return status;
}

int mprun_unregister_fork_hook(const char* name, void* data) {
  if (name == NULL) return ENOENT;
  struct slot* last = NULL; /* registered last */
  pthread_mutex_lock(&changing);
  for (size_t i = 0; i < atomic_load(&slots_used); ++i) {
    struct slot* slot = &slots[i];
    const unsigned long number = atomic_load(&slot->number);
    if (number == 0 || slot->hook.data != data || strncmp(slot->name, name, MOST_NAME - 1) != 0) continue;
    if (last == NULL || number > atomic_load(&last->number)) last = slot;
  }
  if (last != NULL) atomic_store(&last->number, 0);
  pthread_mutex_unlock(&changing);
  return last != NULL ? 0 : ENOENT;
}

void register_adapter(const struct mprun_fork_hook* hook) { (void)mprun_register_fork_hook(hook); }

/* The slot of the last registration before `*number`, held for this fork; NULL if there is none. */
static struct slot* hold_previous(unsigned long* number) {
  for (;;) {
    struct slot* found = NULL;
    unsigned long last = 0;
    for (size_t i = 0; i < atomic_load(&slots_used); ++i) {
      const unsigned long candidate = atomic_load(&slots[i].number);
      if (candidate <= last || candidate >= *number) continue;
      found = &slots[i];
      last = candidate;
    }
    if (found == NULL) return NULL;
    *number = last;
    atomic_fetch_add(&found->forks, 1);
    if (atomic_load(&found->number) == last) return found;
    atomic_fetch_sub(&found->forks, 1); /* removed since */
  }
}

/* Runs one prepare; true if the hook now needs its other half. `*refused` is set if the fork should not happen. */
static bool prepare_one(const struct mprun_fork_hook* hook, bool may_refuse, bool* refused) {
  const unsigned allowed_ms = hook->deadline_ms != 0 ? hook->deadline_ms : DEFAULT_DEADLINE_MS;
  const int64_t start = monotonic_ns();
  const int64_t deadline = start + (int64_t)allowed_ms * 1000000;
  const int status = hook->prepare != NULL ? hook->prepare(hook->data, deadline) : 0;
  const int64_t end = monotonic_ns();
  /* A hook that waits until its deadline always returns a little late. */
  const bool late = end > deadline + 100000000;
  const bool refuses = hook->on_failure == MPRUN_FORK_REFUSED && (status != 0 || late);
  const char* outcome = !refuses     ? "the fork goes on"
                        : may_refuse ? "the fork is refused"
                                     : "the fork goes on, because libc's own forks cannot be refused";
  if (status != 0) {
    char reason[64];
    note(hook->name, "the fork hook \"%s\" failed: %s; %s", hook->name, strerror_r(status, reason, sizeof reason),
         outcome);
  } else if (late) {
    note(hook->name, "the fork hook \"%s\" was late: it took %.1f s of %.1f s; %s", hook->name,
         (double)(end - start) / 1e9, allowed_ms / 1e3, outcome);
  }
  if (refuses) *refused = true;
  return status == 0;
}

static __thread const void* caller;

const void* fork_caller(void) { return caller; }

bool prepare_hooks(struct fork_in_flight* fork, bool may_refuse) {
  caller = fork->caller;
  fork->prepared = 0;
  const bool threads = thread_count() > 1;
  bool refused = false;
  struct slot* slot;
  for (unsigned long number = ULONG_MAX; !(refused && may_refuse) && (slot = hold_previous(&number)) != NULL;) {
    const bool wanted = (threads || !slot->hook.only_with_threads) && adapter_is_on(slot->name);
    if (wanted && prepare_one(&slot->hook, may_refuse, &refused)) {
      fork->slots[fork->prepared++] = (unsigned char)(slot - slots);
    } else {
      atomic_fetch_sub(&slot->forks, 1);
    }
  }
  caller = NULL;
  if (!refused || !may_refuse) return true;
  parent_hooks(fork);
  return false;
}

static void other_half(const struct fork_in_flight* fork, bool in_child) {
  for (size_t i = fork->prepared; i-- > 0;) {
    struct slot* slot = &slots[fork->slots[i]];
    void (*half)(void*) = in_child ? slot->hook.child : slot->hook.parent;
    if (half != NULL) half(slot->hook.data);
    atomic_fetch_sub(&slot->forks, 1);
  }
}

void parent_hooks(const struct fork_in_flight* fork) { other_half(fork, false); }

/* Context: child after fork. */
void child_hooks(const struct fork_in_flight* fork) {
  /* Threads that were registering or forking do not exist in the child, and will release nothing. */
  changing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  for (size_t i = 0; i < atomic_load(&slots_used); ++i) atomic_store(&slots[i].forks, 0);
  for (size_t i = 0; i < fork->prepared; ++i) atomic_fetch_add(&slots[fork->slots[i]].forks, 1);
  other_half(fork, true);
}
