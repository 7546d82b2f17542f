/* The type mprun.deadline: what <mprun/deadline.h> does, as a context manager. */
#ifndef MPRUN_EXTENSION_DEADLINE_H
#define MPRUN_EXTENSION_DEADLINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A new reference to the type; NULL with an exception set. */
PyObject* make_deadline_type(void);

#endif
