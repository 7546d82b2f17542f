/* JSON of the values that tasks return most often: None, bool, int, float and str, without a call into Python. Used by
 * the task loop in every worker. Everything else is left to the json module. */
#ifndef MPRUN_JSON_VALUE_H
#define MPRUN_JSON_VALUE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A byte buffer that grows; owned by the task loop. */
struct byte_buffer {
  char* data;
  size_t size, capacity;
};

/* Makes room for `more` bytes after the first `size`. 0, or -1 with MemoryError set. */
int byte_buffer_reserve(struct byte_buffer* buffer, size_t more);
int byte_buffer_append(struct byte_buffer* buffer, const void* data, size_t size);

/* Appends the JSON of `value`. 1: done; 0: not one of the simple kinds, nothing appended; -1: error set.
 * Non-finite floats become the strings "NaN", "Infinity", "-Infinity". */
int append_simple_json(struct byte_buffer* buffer, PyObject* value);

#endif
