#include "kept_rows.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "task_loop.h"
#include "wire/protocol.h"

enum { MOST_AXES = 8, LONGEST_FORMAT = 16 };

#define NAME "result" /* of a tensor that is the whole value */
static const char kBeforeRow[] = "{\"tensor\":\"tensors/" NAME ".npy\",\"row\":";

/* The last value that Python has written as a row, and where. Only the thread that runs tasks uses it. */
static struct {
  PyObject* type; /* NULL: nothing is kept */
  bool has_numpy; /* its memory is that of what its method numpy() returns */
  char format[LONGEST_FORMAT];
  int axes;
  Py_ssize_t shape[MOST_AXES];
  Py_ssize_t bytes;
  int fd;
  int64_t offset;
} kept;

void forget_rows(void) {
  if (kept.type == NULL) return;
  Py_CLEAR(kept.type);
  close(kept.fd);
}

/* The memory of the value's elements, in C order. 1: taken; 0: it has none that can be used so; -1: interrupted, with
 * the exception set. */
static int take_memory(PyObject* value, bool has_numpy, Py_buffer* memory) {
  PyObject* array = has_numpy ? PyObject_CallMethod(value, "numpy", NULL) : Py_NewRef(value);
  const bool taken = array != NULL && PyObject_GetBuffer(array, memory, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
  Py_XDECREF(array); /* the buffer holds it */
  if (taken) return 1;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1; /* KeyboardInterrupt */
  PyErr_Clear();
  return 0;
}

/* A task may close the descriptor and then open another file. What shows that is asked before each row, so it must be
 * quick: open files know which signal they are to send, but send none unless they are asked to. */
static bool mark(int fd) { return fcntl(fd, F_SETSIG, SIGRTMAX) == 0; }
static bool is_marked(int fd) { return fcntl(fd, F_GETSIG) == SIGRTMAX; }

static void keep(PyObject* value, const Py_buffer* memory, bool has_numpy, int fd, int64_t offset) {
  if (memory->ndim > MOST_AXES || memory->format == NULL || strlen(memory->format) >= LONGEST_FORMAT) return;
  if (!mark(fd)) return;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) return;
  kept.type = Py_NewRef((PyObject*)Py_TYPE(value));
  kept.has_numpy = has_numpy;
  strcpy(kept.format, memory->format);
  kept.axes = memory->ndim;
  for (int i = 0; i < memory->ndim; ++i) kept.shape[i] = memory->shape[i];
  kept.bytes = memory->len;
  kept.fd = own;
  kept.offset = offset;
}

PyObject* keep_rows(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* value = NULL;
  Py_buffer written, memory;
  int fd = -1;
  long long offset = 0;
  if (!PyArg_ParseTuple(args, "Oy*iL", &value, &written, &fd, &offset)) return NULL;
  forget_rows();
  const bool is_task = task_loop_current.task >= 0; /* ranks write once */
  int taken = 0;
  for (int has_numpy = 0; has_numpy <= 1 && is_task && kept.type == NULL && taken >= 0; ++has_numpy) {
    taken = take_memory(value, has_numpy != 0, &memory);
    if (taken <= 0) continue;
    /* A copy has another byte order, or other elements. */
    if (memory.len > 0 && memory.buf == written.buf) keep(value, &memory, has_numpy != 0, fd, offset);
    PyBuffer_Release(&memory);
  }
  PyBuffer_Release(&written);
  return taken < 0 ? NULL : Py_NewRef(Py_None);
}

static bool is_alike(const Py_buffer* memory) {
  if (memory->len != kept.bytes || memory->ndim != kept.axes || memory->format == NULL) return false;
  for (int i = 0; i < kept.axes; ++i) {
    if (memory->shape[i] != kept.shape[i]) return false;
  }
  return strcmp(memory->format, kept.format) == 0;
}

/* False: not all of it, or not to the right file. */
static bool write_row(const Py_buffer* memory, uint64_t task) {
  int64_t at = 0;
  if (__builtin_mul_overflow(task, memory->len, &at) || __builtin_add_overflow(at, kept.offset, &at)) return false;
  if (!is_marked(kept.fd)) return false;
  ssize_t done = 0, count = 1;
  Py_BEGIN_ALLOW_THREADS;
  for (; done < memory->len && count > 0; done += count) {
    count = pwrite(kept.fd, (const char*)memory->buf + done, (size_t)(memory->len - done), at + done);
  }
  Py_END_ALLOW_THREADS;
  return done == memory->len;
}

int append_kept_row(struct byte_buffer* out, PyObject* value, uint64_t task, uint32_t* tensors) {
  if (kept.type == NULL || (PyObject*)Py_TYPE(value) != kept.type) return 0;
  Py_buffer memory;
  const int taken = take_memory(value, kept.has_numpy, &memory);
  if (taken <= 0) return taken;
  const bool written = is_alike(&memory) && write_row(&memory, task);
  PyBuffer_Release(&memory);
  if (!written) return 0;
  const struct mprun_tensor claim = {task, task + 1, MPRUN_TENSOR_ROWS, sizeof NAME - 1};
  char row[20];
  const size_t digits = (size_t)(put_whole_number(row, task) - row);
  if (byte_buffer_append(out, &claim, sizeof claim) < 0 || byte_buffer_append(out, NAME, sizeof NAME - 1) < 0 ||
      byte_buffer_append(out, kBeforeRow, sizeof kBeforeRow - 1) < 0 || byte_buffer_append(out, row, digits) < 0 ||
      byte_buffer_append(out, "}", 1) < 0) {
    return -1;
  }
  *tensors = sizeof claim + sizeof NAME - 1;
  return 1;
}
