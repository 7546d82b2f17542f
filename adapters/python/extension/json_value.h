/* JSON of the values that tasks return most often: None, bool, int, float and str, without a call into Python. Used by
 * the task loop in every worker. Everything else is left to the json module. */
#ifndef MPRUN_JSON_VALUE_H
#define MPRUN_JSON_VALUE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

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

/* The list that a JSON array of `count` whole numbers is, "[1,2,-3]". NULL without an exception: it is something else,
 * or has spaces or longer numbers; NULL with one: no memory. */
PyObject* parse_whole_numbers(const char* json, size_t size, Py_ssize_t count);

/* Writes the digits of a number, at most 20, and returns where they end. */
char* put_whole_number(char* to, uint64_t number);

#endif
