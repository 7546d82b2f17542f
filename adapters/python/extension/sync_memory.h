/* The memory in which the processes of a job share counters, locks, barriers, queues and dicts (core/sync/sync.h): how
 * a process finds it, finds objects in it by name, and allocates in it. Used by the types of sync_*.c, GIL held. */
#ifndef MPRUN_EXTENSION_SYNC_MEMORY_H
#define MPRUN_EXTENSION_SYNC_MEMORY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "sync/sync.h"

/* A Python object that stands for a named one. */
struct sync_object {
  PyObject head; /* a type made from a spec has no PyObject_HEAD of its own */
  PyObject* name;
  void* body;
};

struct sync_wanted {
  uint32_t kind;
  size_t size;  /* of a new one */
  size_t least; /* of one that another process has made */
  /* Fills in a new body, which is all zeros. 0, or an errno. NULL: zeros will do. */
  int (*make)(void* body, const void* argument);
  const void* argument;
};

/* Binds the object to the one of that name, which is made if it is not there yet. -1 with an exception: the name is
 * invalid, or belongs to another kind (TypeError), or there is no room (MemoryError), or the job's memory is not where
 * it should be. */
int sync_bind(PyObject* self, PyObject* name, const struct sync_wanted* wanted);
/* NULL with RuntimeError: it is bound to none. */
void* sync_body(PyObject* self);

/* Returns the offset of `size` bytes, aligned to 16, of any content; 0: there is no room, or the memory is damaged. */
uint64_t sync_allocate(uint64_t size);
/* Raises MemoryError for that, or RuntimeError. NULL. Like all functions that raise, not to be called under a lock:
 * making an exception may start a garbage collection, which may run any code. */
PyObject* sync_no_room(uint64_t size);
/* Frees an allocation; does nothing in damaged memory. */
void sync_release(uint64_t offset);

/* Where `size` bytes at an offset lie; NULL if they are outside of the memory, or of what may be allocated. */
void* sync_at(uint64_t offset, uint64_t size);
uint64_t sync_offset_of(const void* place);

/* Raises RuntimeError: the memory holds nonsense. NULL. */
PyObject* sync_damaged(void);

/* Common to all the types. sync_make_type(): a new reference; NULL with an exception. */
PyObject* sync_make_type(const char* name, initproc init, PyMethodDef* methods, PyGetSetDef* attributes);
void sync_dealloc(PyObject* self);
PyObject* sync_name_of(PyObject* self, void* unused);

#endif
