#include "sync_pieces.h"

/* Releasing the GIL costs more than copying less than that. */
enum { LONG_COPY = 64 * 1024 };

void sync_copy(char* to, const char* from, size_t size) {
  if (size < LONG_COPY) {
    memcpy(to, from, size);
    return;
  }
  Py_BEGIN_ALLOW_THREADS;
  memcpy(to, from, size);
  Py_END_ALLOW_THREADS;
}

static int open_one(struct sync_pieces* pieces, PyObject* piece) {
  Py_buffer* view = &pieces->views[pieces->count];
  if (PyObject_GetBuffer(piece, view, PyBUF_SIMPLE) < 0) return -1;
  ++pieces->count;
  pieces->size += (uint64_t)view->len;
  return 0;
}

int sync_pieces_open(struct sync_pieces* pieces, PyObject* given) {
  memset(pieces, 0, sizeof *pieces);
  const bool is_list = PyList_Check(given);
  const Py_ssize_t count = is_list ? PyList_Size(given) : 1;
  pieces->views = PyMem_Calloc((size_t)count + 1, sizeof *pieces->views);
  if (pieces->views == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (open_one(pieces, is_list ? PyList_GetItem(given, i) : given) < 0) {
      sync_pieces_close(pieces);
      return -1;
    }
  }
  return 0;
}

void sync_pieces_close(struct sync_pieces* pieces) {
  for (Py_ssize_t i = 0; i < pieces->count; ++i) PyBuffer_Release(&pieces->views[i]);
  PyMem_Free(pieces->views);
  pieces->views = NULL;
  pieces->count = 0;
}

void sync_pieces_copy(const struct sync_pieces* pieces, char* to) {
  for (Py_ssize_t i = 0; i < pieces->count; ++i) {
    sync_copy(to, pieces->views[i].buf, (size_t)pieces->views[i].len);
    to += pieces->views[i].len;
  }
}
