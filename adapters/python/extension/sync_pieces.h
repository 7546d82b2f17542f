/* A value as mprun.sync_values encodes it: a list of bytes-like pieces that lie one after the other in shared memory.
 * Used by queue and dict. */
#ifndef MPRUN_EXTENSION_SYNC_PIECES_H
#define MPRUN_EXTENSION_SYNC_PIECES_H

#include "sync_memory.h"

struct sync_pieces {
  Py_buffer* views;
  Py_ssize_t count;
  uint64_t size; /* of all */
};

/* `given`: bytes, or a list of objects that have a buffer. -1 with an exception. */
int sync_pieces_open(struct sync_pieces* pieces, PyObject* given);
void sync_pieces_close(struct sync_pieces* pieces);
/* Copies all pieces; releases the GIL for long ones. */
void sync_pieces_copy(const struct sync_pieces* pieces, char* to);
void sync_copy(char* to, const char* from, size_t size);

#endif
