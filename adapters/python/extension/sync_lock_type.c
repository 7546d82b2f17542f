/* The lock between the processes of a job that programs use. */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>

#include "sync_lock.h"
#include "sync_memory.h"
#include "sync_types.h"

static int make(void* body, const void* unused) {
  (void)unused;
  return mprun_sync_make_mutex(&((struct mprun_sync_lock*)body)->mutex);
}

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", NULL};
  PyObject* name;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:lock", names, &name)) return -1;
  const struct sync_wanted wanted = {MPRUN_SYNC_LOCK, sizeof(struct mprun_sync_lock), sizeof(struct mprun_sync_lock),
                                     make, NULL};
  return sync_bind(self, name, &wanted);
}

/* "worker 3 (pid 4711), task 17". */
static PyObject* describe(const struct mprun_sync_holder* holder) {
  if (holder->pid == 0) return PyUnicode_FromString("a process that ended just when it took it, or let it go");
  char name[64];
  const char* role = holder->role == MPRUN_SYNC_RANK ? "rank" : "worker";
  if (holder->role == MPRUN_SYNC_PROCESS) {
    snprintf(name, sizeof name, "process %d", (int)holder->pid);
  } else {
    snprintf(name, sizeof name, "%s %d (pid %d)", role, (int)holder->number, (int)holder->pid);
  }
  if (holder->task < 0 || holder->role == MPRUN_SYNC_RANK) return PyUnicode_FromString(name);
  return PyUnicode_FromFormat("%s, task %lld", name, (long long)holder->task);
}

/* True; False: not available in time; NULL. */
static PyObject* take(PyObject* self, bool block, PyObject* timeout) {
  struct mprun_sync_lock* lock = sync_body(self);
  int64_t deadline;
  if (lock == NULL || sync_deadline(timeout, &deadline) < 0) return NULL;
  if (!block) deadline = 0;
  const int failed = sync_acquire(lock, deadline);
  if (failed == -1) return NULL;
  if (failed == EDEADLK) {
    PyErr_Format(PyExc_RuntimeError, "this thread holds the lock %R already: it would wait for itself",
                 ((struct sync_object*)self)->name);
    return NULL;
  }
  if (failed != 0 && failed != ETIMEDOUT) return sync_damaged();
  return PyBool_FromLong(failed == 0);
}

static PyObject* acquire(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"blocking", "timeout", NULL};
  int block = 1;
  PyObject* timeout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pO:acquire", names, &block, &timeout)) return NULL;
  return take(self, block != 0, timeout);
}

static PyObject* release(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_lock* lock = sync_body(self);
  if (lock == NULL) return NULL;
  if (!sync_let_go(lock)) {
    PyErr_Format(PyExc_RuntimeError, "this thread does not hold the lock %R, so it cannot release it",
                 ((struct sync_object*)self)->name);
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject* enter(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* taken = take(self, true, NULL);
  if (taken == NULL) return NULL;
  Py_DECREF(taken);
  return Py_NewRef(self);
}

static PyObject* leave(PyObject* self, PyObject* args) {
  (void)args;
  return release(self, NULL);
}

static PyObject* is_locked(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_lock* lock = sync_body(self);
  if (lock == NULL) return NULL;
  const uint32_t word = __atomic_load_n(mprun_sync_word(&lock->mutex), __ATOMIC_RELAXED);
  return PyBool_FromLong((word & FUTEX_TID_MASK) != 0);
}

static PyObject* dead_holder(PyObject* self, void* unused) {
  (void)unused;
  const struct mprun_sync_lock* lock = sync_body(self);
  if (lock == NULL) return NULL;
  if (lock->dead_turn == 0 || lock->dead_turn != lock->turn) Py_RETURN_NONE;
  const struct mprun_sync_holder dead = lock->dead;
  return describe(&dead);
}

static PyMethodDef methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))acquire, METH_VARARGS | METH_KEYWORDS,
     "acquire(blocking=True, timeout=None) -> bool\n\nWaits until the calling thread has the lock: for ever, or\n"
     "`timeout` seconds. False: another has it. Raises RuntimeError where the thread has it already."},
    {"release", release, METH_NOARGS,
     "release()\n\nLets the next one have it. Raises RuntimeError where the calling thread does not hold it."},
    {"locked", is_locked, METH_NOARGS, "locked() -> bool\n\nWhether a thread has it at the moment."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", sync_name_of, NULL, "The name by which all processes of the job find it.", NULL},
    {"dead_holder", dead_holder, NULL,
     "The process that died with the lock before its present, or else last, holder got it:\n"
     "\"worker 3 (pid 4711), task 17\". None: it was released in order. What the lock protects may be half done if "
     "there was one.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject* make_sync_lock_type(void) { return sync_make_type("mprun._mprun.SyncLock", init, methods, attributes); }
