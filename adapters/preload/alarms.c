/* Whether this process has asked for a signal by a clock, which /proc does not show and without which a proof of a hang
 * would be wrong. It stands in a variable that the watch reads (core/watch/alarm.h): nothing is sent, so that nobody
 * waits and nothing is lost. An alarm outlives exec, so that the next program is told of it too. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "preload.h"
#include "wire/alarms.h"

/* Written once: what a child of vfork() does to its parent by it costs no more than a proof. */
MPRUN_EXPORT atomic_int mprun_asked_for_alarm;

static bool is_running(void) {
  struct itimerval left;
  return getitimer(ITIMER_REAL, &left) == 0 && (left.it_value.tv_sec != 0 || left.it_value.tv_usec != 0);
}

void remember_alarm(void) { atomic_store(&mprun_asked_for_alarm, 1); }

void inherit_alarm(void) {
  if (is_running()) remember_alarm();
}

/* Context: child after fork. */
void forget_alarm(void) {
  if (atomic_load(&mprun_asked_for_alarm) != 0)
    atomic_store(&mprun_asked_for_alarm, 0); /* else its page stays shared */
}

int exec_with_alarm(exec_function* exec, const char* program, char* const argv[], char* const envp[]) {
  if (atomic_load(&mprun_asked_for_alarm) == 0 || !is_running()) return exec(program, argv, envp);
  size_t count = 0;
  while (envp != NULL && envp[count] != NULL) ++count;
  char alarm[sizeof MPRUN_ALARM_VARIABLE + 16];
  snprintf(alarm, sizeof alarm, MPRUN_ALARM_VARIABLE "=%d", (int)getpid());
  char* with_alarm[count + 2];
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(envp[i], alarm, sizeof MPRUN_ALARM_VARIABLE) != 0) with_alarm[kept++] = envp[i];
  }
  with_alarm[kept++] = alarm;
  with_alarm[kept] = NULL;
  return exec(program, argv, with_alarm);
}
