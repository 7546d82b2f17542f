/* Records whether this process has requested a signal from a timer. /proc does not show that, and without it a proof of
 * a hang would be wrong. The watch reads it from a variable (core/watch/sample/alarm.h): nothing is sent, so no process
 * waits and nothing is lost. An alarm outlives exec, so it is passed on to the next program. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"
#include "wire/alarms.h"

/* Set once: a child of vfork() that sets it in its parent costs no more than a proof. */
MPRUN_EXPORT atomic_int mprun_asked_for_alarm;
/* Only ever increases, for the same reason: as far as the watch knows, a cancelled alarm may still come. */
MPRUN_EXPORT _Atomic int64_t mprun_last_alarm;

static bool is_zero(const struct timeval* time) { return time->tv_sec == 0 && time->tv_usec == 0; }

static bool read_alarm(struct itimerval* left) {
  return getitimer(ITIMER_REAL, left) == 0 && !is_zero(&left->it_value);
}

static bool is_running(void) {
  struct itimerval left;
  return read_alarm(&left);
}

void remember_alarm(const struct itimerval* alarm) {
  static const int64_t kSecond = 1000000000, kMicrosecond = 1000, kLongest = 1000000000;
  struct timespec now;
  int64_t comes = INT64_MAX;
  const bool comes_once = is_zero(&alarm->it_interval) && alarm->it_value.tv_sec < kLongest;
  if (comes_once && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
    comes = (now.tv_sec + alarm->it_value.tv_sec) * kSecond + now.tv_nsec + alarm->it_value.tv_usec * kMicrosecond;
  }
  int64_t last = atomic_load(&mprun_last_alarm);
  while (last < comes && !atomic_compare_exchange_weak(&mprun_last_alarm, &last, comes)) {
  }
  atomic_store(&mprun_asked_for_alarm, 1);
}

void inherit_alarm(void) {
  struct itimerval left;
  if (read_alarm(&left)) remember_alarm(&left);
}

/* Context: child after fork. */
void forget_alarm(void) {
  if (atomic_load(&mprun_asked_for_alarm) == 0) return; /* its page stays shared */
  atomic_store(&mprun_asked_for_alarm, 0);
  atomic_store(&mprun_last_alarm, 0);
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
