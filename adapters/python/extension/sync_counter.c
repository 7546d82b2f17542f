/* A 64-bit counter that the processes of a job share. */
#include "sync_memory.h"
#include "sync_types.h"

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", NULL};
  PyObject* name;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:counter", names, &name)) return -1;
  const struct sync_wanted wanted = {MPRUN_SYNC_COUNTER, sizeof(struct mprun_sync_counter),
                                     sizeof(struct mprun_sync_counter), NULL, NULL};
  return sync_bind(self, name, &wanted);
}

/* -1 with an exception: not a whole number of 64 bits. */
static int number_of(PyObject* value, int64_t* number) {
  int overflow = 0;
  *number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) PyErr_Format(PyExc_OverflowError, "a counter has 64 bits: %R does not fit", value);
  return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject* add(PyObject* self, PyObject* args) {
  struct mprun_sync_counter* counter = sync_body(self);
  PyObject* given = NULL;
  int64_t more = 1;
  if (counter == NULL || !PyArg_UnpackTuple(args, "add", 0, 1, &given)) return NULL;
  if (given != NULL && number_of(given, &more) < 0) return NULL;
  int64_t before = __atomic_load_n(&counter->value, __ATOMIC_RELAXED);
  int64_t after;
  do {
    if (__builtin_add_overflow(before, more, &after)) {
      PyErr_Format(PyExc_OverflowError, "the counter %R is at %lld: %lld more do not fit into 64 bits",
                   ((struct sync_object*)self)->name, (long long)before, (long long)more);
      return NULL;
    }
  } while (!__atomic_compare_exchange_n(&counter->value, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return PyLong_FromLongLong(after);
}

static PyObject* set(PyObject* self, PyObject* value) {
  struct mprun_sync_counter* counter = sync_body(self);
  int64_t number;
  if (counter == NULL || number_of(value, &number) < 0) return NULL;
  __atomic_store_n(&counter->value, number, __ATOMIC_SEQ_CST);
  Py_RETURN_NONE;
}

static PyObject* value_of(PyObject* self, void* unused) {
  (void)unused;
  struct mprun_sync_counter* counter = sync_body(self);
  return counter != NULL ? PyLong_FromLongLong(__atomic_load_n(&counter->value, __ATOMIC_SEQ_CST)) : NULL;
}

static PyMethodDef methods[] = {
    {"add", add, METH_VARARGS,
     "add(n=1) -> int\n\nAdds a whole number and returns what the counter is then; no other process comes in between.\n"
     "Raises OverflowError, and changes nothing, where that does not fit into 64 bits."},
    {"set", set, METH_O, "set(value)\n\nMakes it `value`."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", sync_name_of, NULL, "The name by which all processes of the job find it.", NULL},
    {"value", value_of, NULL, "What it is now.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject* make_sync_counter_type(void) { return sync_make_type("mprun._mprun.SyncCounter", init, methods, attributes); }
