#include "deadline.h"

#include <mprun/deadline.h>
#include <stdbool.h>

struct deadline_object {
  PyObject head; /* a type made from a spec has no PyObject_HEAD of its own */
  double seconds;
  PyObject* label;
  bool entered;
  struct mprun_deadline deadline;
};

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"seconds", "label", NULL};
  struct deadline_object* object = (struct deadline_object*)self;
  double seconds = 0;
  PyObject* label = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "d|U:deadline", names, &seconds, &label)) return -1;
  if (!(seconds > 0)) {
    PyErr_SetString(PyExc_ValueError, "deadline: seconds must be more than 0");
    return -1;
  }
  if (object->entered) {
    PyErr_SetString(PyExc_RuntimeError, "deadline: it has begun already");
    return -1;
  }
  if (label != NULL && PyUnicode_AsUTF8AndSize(label, NULL) == NULL) return -1;
  object->seconds = seconds;
  PyObject* old = object->label;
  object->label = label;
  Py_XINCREF(label);
  Py_XDECREF(old);
  return 0;
}

static PyObject* enter(PyObject* self, PyObject* unused) {
  (void)unused;
  struct deadline_object* object = (struct deadline_object*)self;
  if (object->entered || object->seconds == 0) {
    PyErr_SetString(PyExc_RuntimeError, "deadline: it has begun already; make one for each with-block");
    return NULL;
  }
  const char* label = object->label != NULL ? PyUnicode_AsUTF8AndSize(object->label, NULL) : NULL;
  mprun_begin_deadline(&object->deadline, object->seconds, label); /* does nothing without mprun */
  object->entered = true;
  Py_INCREF(self);
  return self;
}

static PyObject* leave(PyObject* self, PyObject* args) {
  (void)args;
  struct deadline_object* object = (struct deadline_object*)self;
  if (object->entered) mprun_end_deadline(&object->deadline);
  object->entered = false;
  Py_RETURN_NONE;
}

static void dealloc(PyObject* self) {
  struct deadline_object* object = (struct deadline_object*)self;
  PyTypeObject* type = Py_TYPE(self);
  if (object->entered) mprun_end_deadline(&object->deadline);
  Py_XDECREF(object->label);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static const char doc[] =
    "deadline(seconds, label='')\n\n"
    "A watchdog around a block: `with mprun.deadline(30, 'loading'):`. If the block is not left in time, mprun "
    "reports\n"
    "where its thread is, and acts as --on-hang says (in a job: the worker is ended and its task tried again). The\n"
    "thread itself is not interrupted. Threads have one each, or several; they may be nested. Without mprun around "
    "the\n"
    "program it does nothing. Raises ValueError where seconds is not more than 0.";

PyObject* make_deadline_type(void) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, (void*)doc},
      {Py_tp_init, (void*)init},
      {Py_tp_dealloc, (void*)dealloc},
      {Py_tp_methods, methods},
      {0, NULL},
  };
  static PyType_Spec spec = {"mprun.deadline", sizeof(struct deadline_object), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}
