/* _mprun: the part of a worker that must be C. Stable ABI of CPython 3.11: one file for all later versions; a
 * free-threaded Python needs a file of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "clean_thread.h"
#include "deadline.h"
#include "frames.h"
#include "kept_rows.h"
#include "sync_types.h"
#include "task_loop.h"

/* fork_process() -> pid, 0 in the child. The interpreter's own hooks run with the GIL held across the fork. */
static PyObject* fork_process(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  PyOS_BeforeFork();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) raise(SIGKILL); /* the host died before the line above took effect: end as if after it */
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  if (pid < 0) return PyErr_SetFromErrno(PyExc_OSError);
  return PyLong_FromLong(pid);
}

/* Asks the preload library; False without it. */
static PyObject* wants_clean_thread(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return PyBool_FromLong(mprun_wants_clean_thread != NULL && mprun_wants_clean_thread());
}

static PyObject* declare_clean_thread(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  if (mprun_declare_clean_thread != NULL) mprun_declare_clean_thread();
  Py_RETURN_NONE;
}

/* posix_fallocate() would write to every block where the file system cannot reserve space (NFS before 4.2, ZFS): a long
 * time for a large file. There the file only gets its size, and a full disk fails the writes. */
static PyObject* reserve_space(PyObject* self, PyObject* arguments) {
  (void)self;
  int fd = -1;
  long long size = 0;
  if (!PyArg_ParseTuple(arguments, "iL", &fd, &size)) return NULL;
  int error = 0;
  do {
    PyThreadState* state = PyEval_SaveThread();
    error = fallocate(fd, 0, 0, size) == 0 ? 0 : errno;
    if (error == EOPNOTSUPP || error == ENOSYS) error = ftruncate(fd, size) == 0 ? 0 : errno;
    PyEval_RestoreThread(state);
    if (error == EINTR && PyErr_CheckSignals() != 0) return NULL;
  } while (error == EINTR);
  if (error == 0) Py_RETURN_NONE;
  errno = error;
  return PyErr_SetFromErrno(PyExc_OSError);
}

/* set_mempolicy(2); glibc has no function for it. */
static PyObject* set_memory_policy(PyObject* self, PyObject* args) {
  (void)self;
  enum { kWords = 16, kBits = 8 * sizeof(unsigned long) };
  unsigned long mask[kWords] = {0};
  int policy = 0;
  PyObject* nodes = NULL;
  if (!PyArg_ParseTuple(args, "iO!:set_memory_policy", &policy, &PyList_Type, &nodes)) return NULL;
  for (Py_ssize_t i = 0; i < PyList_Size(nodes); ++i) {
    const long node = PyLong_AsLong(PyList_GetItem(nodes, i));
    if (PyErr_Occurred()) return NULL;
    if (node < 0 || node >= (long)kWords * kBits) return PyErr_Format(PyExc_ValueError, "no memory node %ld", node);
    mask[node / kBits] |= 1UL << node % kBits;
  }
  const unsigned long most = (unsigned long)kWords * kBits + 1; /* the kernel counts one bit less */
  if (syscall(SYS_set_mempolicy, policy, mask, most) != 0) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fork_process", fork_process, METH_NOARGS,
     "fork_process() -> int\n\nForks with the interpreter's hooks; the child dies with its parent."},
    {"wants_clean_thread", wants_clean_thread, METH_NOARGS,
     "wants_clean_thread() -> bool\n\nTrue if forks must come from a thread that never ran an OpenMP region: a loaded\n"
     "libgomp is too old to be paused."},
    {"declare_clean_thread", declare_clean_thread, METH_NOARGS,
     "declare_clean_thread()\n\nThe calling thread never ran an OpenMP region: its forks are safe."},
    {"set_memory_policy", set_memory_policy, METH_VARARGS,
     "set_memory_policy(policy, nodes)\n\nset_mempolicy(2) for the calling thread and what it starts."},
    {"reserve_space", reserve_space, METH_VARARGS,
     "reserve_space(fd, size)\n\nMakes a new file so large, with the space for it where the file system can reserve "
     "it."},
    {"keep_rows", keep_rows, METH_VARARGS,
     "keep_rows(value, memory, fd, offset)\n\nThe value, a task's row, was written from `memory` to the file, whose "
     "first row\nis at `offset`: run_tasks writes those of later tasks that look like it."},
    {"read_frame", read_frame, METH_VARARGS,
     "read_frame(fd) -> (type, payload) | None\n\nThe next frame; None at the end of the stream."},
    {"write_frame", write_frame, METH_VARARGS, "write_frame(fd, type, payload)\n\nWrites one frame whole."},
    {"run_tasks", run_tasks, METH_VARARGS,
     "run_tasks(channel, results, claims, slot, function, style, decode, encode, describe, before) -> bool\n\n"
     "Serves tasks until asked to stop (True) or the supervisor is gone (False). style: 0 item, 1 args,\n"
     "2 kwargs; decode(str) -> list; encode(value, task, input) -> bytes, or\n"
     "(what it says of its tensors, bytes); describe(exception) -> bytes;\n"
     "before(task) or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_mprun",
    "What of mprun must be C in a Python process.",
    -1,
    methods,
    NULL,
    NULL,
    NULL,
    NULL,
};

/* -1 with an exception set. */
static int add_type(PyObject* module, const char* name, PyObject* type) {
  const int failed = type == NULL || PyModule_AddObjectRef(module, name, type) < 0;
  Py_XDECREF(type);
  return failed ? -1 : 0;
}

PyMODINIT_FUNC PyInit__mprun(void) {
  PyObject* module = PyModule_Create(&definition);
  if (module == NULL) return NULL;
#ifdef Py_GIL_DISABLED
  PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  protect_frames();
  if (add_type(module, "deadline", make_deadline_type()) < 0 ||
      add_type(module, "SyncCounter", make_sync_counter_type()) < 0 ||
      add_type(module, "SyncLock", make_sync_lock_type()) < 0 ||
      add_type(module, "SyncBarrier", make_sync_barrier_type()) < 0 ||
      add_type(module, "SyncQueue", make_sync_queue_type()) < 0 ||
      add_type(module, "SyncDict", make_sync_dict_type()) < 0) {
    Py_CLEAR(module);
  }
  return module;
}
