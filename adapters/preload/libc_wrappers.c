/* Wraps libc functions to report to the watch, through alarms.c and lifecycle_notes.c, what /proc does not show: which
 * process will get a signal from a timer, which one was sent SIGTERM, and how a child ended. Otherwise they do what
 * libc's do. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload.h"
#include "wire/child_polls.h"

#define FOR_EACH_REAL(X) X(alarm) X(ualarm) X(setitimer) X(kill) X(wait) X(waitpid) X(wait3) X(wait4) X(waitid)
// NOLINTBEGIN(bugprone-macro-parentheses): member names
#define DECLARE(name) __typeof__(&name) name;
#define FIND(name) real.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
// NOLINTEND(bugprone-macro-parentheses)
static struct { FOR_EACH_REAL(DECLARE) } real;

void find_witnessed(void) {
  if (real.waitid == NULL) {
    FOR_EACH_REAL(FIND)
  }
}

MPRUN_EXPORT unsigned alarm(unsigned seconds) {
  find_witnessed();
  if (seconds != 0) remember_alarm(&(struct itimerval){.it_value = {.tv_sec = seconds}});
  return real.alarm(seconds);
}

MPRUN_EXPORT useconds_t ualarm(useconds_t value, useconds_t interval) {
  find_witnessed();
  if (value != 0) {
    remember_alarm(&(struct itimerval){.it_value = {.tv_usec = value}, .it_interval = {.tv_usec = interval}});
  }
  return real.ualarm(value, interval);
}

/* The other timers stand still while a process is blocked. */
MPRUN_EXPORT int setitimer(__itimer_which_t which, const struct itimerval* new_value, struct itimerval* old_value) {
  find_witnessed();
  const struct timeval* first = new_value == NULL ? NULL : &new_value->it_value;
  if (which == ITIMER_REAL && first != NULL && (first->tv_sec != 0 || first->tv_usec != 0)) remember_alarm(new_value);
  return real.setitimer(which, new_value, old_value);
}

MPRUN_EXPORT int kill(pid_t pid, int number) {
  find_witnessed();
  const int failed = real.kill(pid, number);
  if (failed == 0 && number == SIGTERM && pid > 0) note_termination(pid);
  return failed;
}

/* Reports the end of a reaped child, unless it exited with 0. */
static pid_t reaped(pid_t pid, int status) {
  const bool by_signal = WIFSIGNALED(status);
  if (pid > 0 && (by_signal || (WIFEXITED(status) && WEXITSTATUS(status) != 0))) note_end(pid, status);
  return pid;
}

MPRUN_EXPORT _Atomic(int32_t) mprun_polled_child;
MPRUN_EXPORT _Atomic(uint64_t) mprun_child_polls;

MPRUN_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  find_witnessed();
  int own = 0;
  const pid_t found = real.waitpid(pid, &own, options);
  if (found == 0 && pid > 0) {
    atomic_store_explicit(&mprun_polled_child, pid, memory_order_relaxed);
    atomic_fetch_add_explicit(&mprun_child_polls, 1, memory_order_relaxed);
  }
  if (found > 0 && status != NULL) *status = own;
  return reaped(found, own);
}

MPRUN_EXPORT pid_t wait(int* status) {
  find_witnessed();
  int own = 0;
  const pid_t found = real.wait(&own);
  if (found > 0 && status != NULL) *status = own;
  return reaped(found, own);
}

MPRUN_EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) {
  find_witnessed();
  int own = 0;
  const pid_t found = real.wait4(pid, &own, options, usage);
  if (found > 0 && status != NULL) *status = own;
  return reaped(found, own);
}

MPRUN_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) {
  find_witnessed();
  int own = 0;
  const pid_t found = real.wait3(&own, options, usage);
  if (found > 0 && status != NULL) *status = own;
  return reaped(found, own);
}

MPRUN_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  find_witnessed();
  siginfo_t own = {.si_pid = 0};
  siginfo_t* filled = info != NULL ? info : &own;
  const int failed = real.waitid(type, id, filled, options);
  if (failed != 0 || filled->si_pid <= 0) return failed;
  if (filled->si_code == CLD_EXITED) {
    reaped(filled->si_pid, filled->si_status << 8);
  } else if (filled->si_code == CLD_KILLED || filled->si_code == CLD_DUMPED) {
    reaped(filled->si_pid, filled->si_status);
  }
  return failed;
}
