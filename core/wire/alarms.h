/* How the preload library records that its process has asked for a signal by a clock: in a variable of its own, which
 * the watch reads (core/watch/sample/alarm.h). Plain C. */
#ifndef MPRUN_WIRE_ALARMS_H
#define MPRUN_WIRE_ALARMS_H

/* Part of the library's file name in /proc/PID/maps and LD_PRELOAD. */
#define MPRUN_PRELOAD_NAME "libmprun_preload"
/* An int32_t; not 0: the process has asked for one. */
#define MPRUN_ALARM_SYMBOL "mprun_asked_for_alarm"
/* An int64_t: when the last alarm is due, in nanoseconds of CLOCK_MONOTONIC. INT64_MAX: it repeats for ever. */
#define MPRUN_LAST_ALARM_SYMBOL "mprun_last_alarm"

/* Set in the environment when a process with an alarm executes another program; holds its pid. The alarm stays, and the
 * library may be unable to load into that program. */
#define MPRUN_ALARM_VARIABLE "MPRUN_ALARM"

#endif /* MPRUN_WIRE_ALARMS_H */
