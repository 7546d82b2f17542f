/* The base types of mprun.counter, lock, barrier, queue and dict. Each: a new reference; NULL with an exception set. */
#ifndef MPRUN_EXTENSION_SYNC_TYPES_H
#define MPRUN_EXTENSION_SYNC_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject* make_sync_counter_type(void);
PyObject* make_sync_lock_type(void);
PyObject* make_sync_barrier_type(void);
PyObject* make_sync_queue_type(void);
PyObject* make_sync_dict_type(void);

#endif
