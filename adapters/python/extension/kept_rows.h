/* Rows of tensors/result.npy without Python: a value that looks like an earlier one, whose row tensor_files.py has
 * written, goes to the same file, in the place of its task. For a tensor of a kilobyte that takes a fifth of the time.
 */
#ifndef MPRUN_KEPT_ROWS_H
#define MPRUN_KEPT_ROWS_H

#include "json_value.h"

/* keep_rows(value, memory, fd, offset): the value, a task's row, was written from `memory` to the file `fd`, whose
 * first row is at `offset`. Keeps what is needed to recognise such values, if they are in memory as they are in the
 * file. */
PyObject* keep_rows(PyObject* self, PyObject* args);

/* Writes the row of a task, and appends the claim of it, whose size goes into `*tensors`, and the JSON that stands for
 * it. 1: done; 0: left to Python, which also reports what goes wrong, with nothing appended; -1: error set. */
int append_kept_row(struct byte_buffer* out, PyObject* value, uint64_t task, uint32_t* tensors);

/* Closes the file. */
void forget_rows(void);

#endif
