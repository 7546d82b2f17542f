/* How the preload library says that its process has asked for a signal by a clock: in a variable of its own, which the
 * watch reads (core/watch/alarm.h). Plain C. */
#ifndef MPRUN_WIRE_ALARMS_H
#define MPRUN_WIRE_ALARMS_H

/* Part of the library's file name, as /proc/PID/maps and LD_PRELOAD have it. */
#define MPRUN_PRELOAD_NAME "libmprun_preload"
/* An int32_t; not 0: it has. */
#define MPRUN_ALARM_SYMBOL "mprun_asked_for_alarm"
/* An int64_t: when the last of them comes, in nanoseconds of CLOCK_MONOTONIC. INT64_MAX: again and again. */
#define MPRUN_LAST_ALARM_SYMBOL "mprun_last_alarm"

/* In the environment of a program that a process with an alarm has turned into: its number. The alarm goes on, and the
 * program may be one that the library cannot be in. */
#define MPRUN_ALARM_VARIABLE "MPRUN_ALARM"

#endif /* MPRUN_WIRE_ALARMS_H */
