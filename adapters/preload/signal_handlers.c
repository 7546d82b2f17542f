/* Records which function handles which signal, in a table that the watch reads (core/watch/sample/signal_handlers.h),
 * to judge by the module of a handler whether it may let a blocked thread go on. Calls libc's functions by their other
 * names, so that nothing has to be looked up: a program may install handlers between fork and exec. */
#include <signal.h>
#include <stdatomic.h>

#include "preload.h"
#include "wire/signal_handlers.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): libc's names
int __sigaction(int number, const struct sigaction* action, struct sigaction* old);
sighandler_t bsd_signal(int number, sighandler_t handler);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

/* A child of vfork() writes into its parent's table. It resets all handlers before it executes its program, as the
 * children of CPython's subprocess do, while its parent keeps them: so a reset is not recorded. */
MPRUN_EXPORT _Atomic(uint64_t) mprun_signal_handlers[MPRUN_SIGNALS];
MPRUN_EXPORT _Atomic(uint32_t) mprun_handler_installations[MPRUN_SIGNALS];

static void remember_handler(int number, sighandler_t handler) {
  const bool is_function = handler != SIG_DFL && handler != SIG_IGN;
  if (is_function && number > 0 && number < MPRUN_SIGNALS) {
    atomic_store_explicit(&mprun_signal_handlers[number], (uint64_t)(uintptr_t)handler, memory_order_relaxed);
    atomic_fetch_add_explicit(&mprun_handler_installations[number], 1, memory_order_relaxed);
  }
}

MPRUN_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  /* Read before: `old` may be the same object. The two members of its union are one address. */
  const sighandler_t handler = action != NULL ? action->sa_handler : NULL;
  const int failed = __sigaction(number, action, old);
  if (failed == 0 && action != NULL) remember_handler(number, handler);
  return failed;
}

MPRUN_EXPORT sighandler_t signal(int number, sighandler_t handler) {
  const sighandler_t before = bsd_signal(number, handler);
  if (before != SIG_ERR) remember_handler(number, handler);
  return before;
}

MPRUN_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) {
  const sighandler_t before = sysv_signal(number, handler);
  if (before != SIG_ERR) remember_handler(number, handler);
  return before;
}
