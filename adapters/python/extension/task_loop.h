/* The task loop of a worker: takes chunks of tasks from the channel, calls the function for each and
 * writes every result to the results pipe before the next task starts, so that a worker's death loses
 * nothing it had finished. Runs in the worker's main thread. */
#ifndef MPRUN_TASK_LOOP_H
#define MPRUN_TASK_LOOP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The task that the loop of this process, or of the one it was forked from, runs. */
struct task_loop_place {
  int64_t task; /* -1: none */
  uint32_t attempt;
};
extern struct task_loop_place task_loop_current;

/* run_tasks(channel, results, claims, slot, function, style, decode, encode, describe, before) -> bool
 * See the docstring in module.c. */
PyObject* run_tasks(PyObject* self, PyObject* args);

#endif
