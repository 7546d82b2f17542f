#include "task_loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "json_value.h"
#include "kept_rows.h"
#include "wire/protocol.h"

enum call_style { CALL_ITEM = 0, CALL_ARGS = 1, CALL_KWARGS = 2 };

struct task_loop {
  struct frame_reader channel;
  int results;
  struct mprun_claim_slot* claims;
  enum call_style style;
  PyObject *function, *decode, *encode, *describe, *before;
  PyObject *environ, *task_key, *attempt_key; /* the dict that os.environ wraps */
  PyObject* attempt_text;                     /* of the last task's attempt */
  uint32_t attempt;                           /* its number; 0: none yet */
  struct byte_buffer out;
};

/* What getenv sees: putenv keeps our memory, so a new task is a few bytes written in place. */
static char task_variable[40] = "MPRUN_TASK=";
static char attempt_variable[40] = "MPRUN_ATTEMPT=";

struct task_loop_place task_loop_current = {-1, 0};

/* Set in a process that a task forked: if it comes back here, it must not go on as a second worker. */
static volatile int is_copy = 0;

static void mark_copy(void) { is_copy = 1; }

static int64_t read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The wall clock when the monotonic clock shows `now`. Tasks of the same millisecond share one reading; a reading
 * during which this thread was interrupted is late, and is used once only. */
static int64_t wall_clock(int64_t now) {
  enum { SHARED = 1000000, INTERRUPTED = 10000 }; /* ns */
  static int64_t read_at, ahead;
  if (now - read_at > SHARED) {
    ahead = read_clock(CLOCK_REALTIME) - now;
    read_at = read_clock(CLOCK_MONOTONIC) - now < INTERRUPTED ? now : 0;
  }
  return now + ahead;
}

/* Sets the task's number and attempt in the environment, for getenv and os.environ alike. */
static int name_task(struct task_loop* loop, const struct mprun_task* task) {
  task_loop_current = (struct task_loop_place){(int64_t)task->task, task->attempt};
  char* const number = task_variable + strlen("MPRUN_TASK=");
  *put_whole_number(number, task->task) = '\0';
  if (loop->attempt != task->attempt) {
    char* const attempt = attempt_variable + strlen("MPRUN_ATTEMPT=");
    *put_whole_number(attempt, task->attempt) = '\0';
    Py_XDECREF(loop->attempt_text);
    loop->attempt_text = PyBytes_FromString(attempt);
    if (!loop->attempt_text) return -1;
    loop->attempt = task->attempt;
  }
  if (!loop->environ) return 0;
  PyObject* text = PyBytes_FromString(number);
  const int failed = !text || PyObject_SetItem(loop->environ, loop->task_key, text) < 0 ||
                     PyObject_SetItem(loop->environ, loop->attempt_key, loop->attempt_text) < 0;
  Py_XDECREF(text);
  return failed ? -1 : 0;
}

/* Calls the function in the requested style; NULL with the exception set. */
static PyObject* call_function(struct task_loop* loop, PyObject* input) {
  if (loop->style == CALL_ITEM) return PyObject_CallFunctionObjArgs(loop->function, input, NULL);
  if (loop->style == CALL_KWARGS) {
    if (!PyDict_Check(input)) {
      PyErr_Format(PyExc_TypeError, "\"call\": \"kwargs\" needs every input to be a JSON object, this one is %R",
                   input);
      return NULL;
    }
    PyObject* none = PyTuple_New(0);
    PyObject* value = none ? PyObject_Call(loop->function, none, input) : NULL;
    Py_XDECREF(none);
    return value;
  }
  if (!PyList_Check(input)) {
    PyErr_Format(PyExc_TypeError, "\"call\": \"args\" needs every input to be a JSON array, this one is %R", input);
    return NULL;
  }
  PyObject* arguments = PyList_AsTuple(input);
  PyObject* value = arguments ? PyObject_Call(loop->function, arguments, NULL) : NULL;
  Py_XDECREF(arguments);
  return value;
}

/* Appends a bytes object to the frame. */
static int append_bytes(struct byte_buffer* out, PyObject* bytes) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return -1;
  if ((uint64_t)size + out->size > MPRUN_MAX_PAYLOAD) {
    PyErr_SetString(PyExc_ValueError, "the value is larger than 1 GiB: write it to a file and return its name");
    return -1;
  }
  return byte_buffer_append(out, data, (size_t)size);
}

/* Appends what encode makes of the value: JSON, or a pair of the claims about its tensors, whose size goes into
 * `*tensors`, and JSON. */
static int append_value(struct task_loop* loop, PyObject* value, const struct mprun_task* task, PyObject* input,
                        uint32_t* tensors) {
  int simple = append_simple_json(&loop->out, value);
  if (simple == 0) simple = append_kept_row(&loop->out, value, task->task, tensors);
  if (simple != 0) return simple < 0 ? -1 : 0;
  PyObject* encoded = PyObject_CallFunction(loop->encode, "OKO", value, (unsigned long long)task->task, input);
  if (!encoded) return -1;
  int failed;
  if (PyTuple_Check(encoded) && PyTuple_Size(encoded) == 2) {
    const size_t before = loop->out.size;
    failed = append_bytes(&loop->out, PyTuple_GetItem(encoded, 0)) < 0;
    *tensors = (uint32_t)(loop->out.size - before);
    failed = failed || append_bytes(&loop->out, PyTuple_GetItem(encoded, 1)) < 0;
  } else {
    failed = append_bytes(&loop->out, encoded) < 0;
  }
  Py_DECREF(encoded);
  return failed ? -1 : 0;
}

/* Appends the description of the exception that is set, and clears it. */
static int append_exception(struct task_loop* loop) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  PyObject* text = PyObject_CallFunctionObjArgs(loop->describe, value ? value : Py_None, NULL);
  const int failed = !text || append_bytes(&loop->out, text) < 0;
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return failed ? -1 : 0;
}

/* Runs one task from input to written result. -1: the loop cannot go on. */
static int run_task(struct task_loop* loop, const struct mprun_task* task, uint32_t position, PyObject* input) {
  if (name_task(loop, task) < 0) return -1;
  const int64_t began = read_clock(CLOCK_MONOTONIC);
  struct mprun_result result = {position, 0, wall_clock(began), 0, 0, 0};
  const size_t prefix = sizeof(struct mprun_frame) + sizeof result;
  loop->out.size = 0;
  if (byte_buffer_reserve(&loop->out, prefix) < 0) return -1;
  loop->out.size = prefix;

  PyObject* value = NULL;
  int ok = 1;
  if (loop->before != Py_None) {
    PyObject* done = PyObject_CallFunction(loop->before, "K", (unsigned long long)task->task);
    ok = done != NULL;
    Py_XDECREF(done);
  }
  if (ok && task->has_no_input) {
    PyErr_SetString(PyExc_ValueError, "the input could not be read"); /* mprun knows why */
  } else if (ok) {
    value = call_function(loop, input);
  }
  if (is_copy) _exit(0);
  ok = value != NULL && append_value(loop, value, task, input, &result.tensors) == 0;
  Py_XDECREF(value); /* may run the value's finaliser: still this task's time */
  if (!ok) {
    loop->out.size = prefix;
    result.failed = 1;
    result.tensors = 0;
    if (append_exception(loop) < 0) return -1;
  }
  result.duration = read_clock(CLOCK_MONOTONIC) - began;
  const struct mprun_frame header = {(uint32_t)(loop->out.size - sizeof header), MPRUN_FRAME_MAGIC, MPRUN_RESULT};
  memcpy(loop->out.data, &header, sizeof header);
  memcpy(loop->out.data + sizeof header, &result, sizeof result);
  const int failed = write_whole(loop->results, loop->out.data, loop->out.size);
  if (loop->out.capacity > (1U << 20)) {
    free(loop->out.data);
    memset(&loop->out, 0, sizeof loop->out);
  }
  return failed;
}

/* The inputs of a chunk, from their JSON; NULL with the exception set. */
static PyObject* decode_inputs(struct task_loop* loop, const char* json, size_t size, uint32_t count) {
  PyObject* inputs = parse_whole_numbers(json, size, (Py_ssize_t)count);
  if (inputs || PyErr_Occurred()) return inputs;
  PyObject* text = PyUnicode_DecodeUTF8(json, (Py_ssize_t)size, NULL);
  inputs = text ? PyObject_CallFunctionObjArgs(loop->decode, text, NULL) : NULL;
  Py_XDECREF(text);
  return inputs;
}

/* Runs the tasks of one frame, skipping those the supervisor took back. */
static int run_chunk(struct task_loop* loop, const char* data, size_t size) {
  struct mprun_tasks chunk;
  memcpy(&chunk, data, sizeof chunk);
  const size_t json = sizeof chunk + (size_t)chunk.count * sizeof(struct mprun_task);
  PyObject* inputs = decode_inputs(loop, data + json, size - json, chunk.count);
  if (!inputs) return -1;
  int failed = 0;
  for (uint32_t i = 0; i < chunk.count && !failed; ++i) {
    if (!mprun_claim_task(loop->claims, chunk.position + i)) continue;
    struct mprun_task task;
    memcpy(&task, data + sizeof chunk + i * sizeof task, sizeof task);
    PyObject* input = PySequence_GetItem(inputs, (Py_ssize_t)i);
    failed = !input || run_task(loop, &task, chunk.position + i, input) < 0;
    Py_XDECREF(input);
  }
  Py_DECREF(inputs);
  return failed ? -1 : 0;
}

/* 1: asked to stop, 0: the supervisor is gone, -1: error set. */
static int serve(struct task_loop* loop) {
  for (;;) {
    struct mprun_frame header;
    const char* payload = NULL;
    const int got = next_frame(&loop->channel, &header, &payload);
    if (got <= 0) return got;
    if (header.type == MPRUN_STOP) return 1;
    if (header.type == MPRUN_TASKS && run_chunk(loop, payload, header.size) < 0) return -1;
  }
}

/* The dict that os.environ wraps, so that a task's number costs no Python call; NULL if there is none. */
static PyObject* environ_dict(void) {
  PyObject* os = PyImport_ImportModule("os");
  PyObject* mapping = os ? PyObject_GetAttrString(os, "environ") : NULL;
  PyObject* data = mapping ? PyObject_GetAttrString(mapping, "_data") : NULL;
  Py_XDECREF(os);
  Py_XDECREF(mapping);
  PyErr_Clear();
  return data;
}

PyObject* run_tasks(PyObject* self, PyObject* args) {
  (void)self;
  struct task_loop loop = {0};
  int claims, slot, style;
  if (!PyArg_ParseTuple(args, "iiiiOiOOOO", &loop.channel.fd, &loop.results, &claims, &slot, &loop.function, &style,
                        &loop.decode, &loop.encode, &loop.describe, &loop.before)) {
    return NULL;
  }
  loop.style = (enum call_style)style;
  const size_t bytes = sizeof(struct mprun_claim_slot) * ((size_t)slot + 1);
  void* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, claims, 0);
  if (mapped == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
  loop.claims = (struct mprun_claim_slot*)mapped + slot;
  pthread_atfork(NULL, NULL, mark_copy);
  putenv(task_variable);
  putenv(attempt_variable);
  loop.environ = environ_dict();
  loop.task_key = PyBytes_FromString("MPRUN_TASK");
  loop.attempt_key = PyBytes_FromString("MPRUN_ATTEMPT");
  const int stopped = serve(&loop);
  task_loop_current.task = -1;
  /* After the last task no task runs: its name goes, and putenv must not keep this memory. */
  unsetenv("MPRUN_TASK");
  unsetenv("MPRUN_ATTEMPT");
  Py_XDECREF(loop.environ);
  Py_XDECREF(loop.task_key);
  Py_XDECREF(loop.attempt_key);
  Py_XDECREF(loop.attempt_text);
  free_frames(&loop.channel);
  forget_rows();
  free(loop.out.data);
  munmap(mapped, bytes);
  return stopped < 0 ? NULL : PyBool_FromLong(stopped);
}
