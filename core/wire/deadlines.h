/* The board of deadlines: by which time a thread wants to be done with something, one cache line a thread, in memory
 * that mprun and every process below it share. Threads write their lines (adapters/preload/deadlines.c), mprun reads
 * them. The memory is mprun's: what a line says survives the death of its process. Plain C; one build, one machine. */
#ifndef MPRUN_WIRE_DEADLINES_H
#define MPRUN_WIRE_DEADLINES_H

#include <stdint.h>

/* Processes find the path of the memory in this variable. */
#define MPRUN_DEADLINES_VARIABLE "MPRUN_DEADLINES"
#define MPRUN_DEADLINES_MAGIC 0x4d504431U
#define MPRUN_DEADLINES_LINES 4095U
#define MPRUN_DEADLINES_LABEL 40U

struct mprun_deadline_line {
  int64_t due;   /* CLOCK_MONOTONIC, nanoseconds; 0: the thread has no deadline. Written last, and cleared first. */
  int64_t limit; /* nanoseconds: how long it had; it began at due - limit */
  int32_t tid;   /* the thread that owns the line; 0: it is free */
  int32_t pid;
  char label[MPRUN_DEADLINES_LABEL]; /* human-readable; ends with a NUL, or with the field */
};

struct mprun_deadline_board {
  uint32_t magic;
  uint32_t used; /* lines from here on were never taken */
  uint32_t unused[14];
  struct mprun_deadline_line lines[MPRUN_DEADLINES_LINES];
};

#endif /* MPRUN_WIRE_DEADLINES_H */
