#include "frames.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_value.h"

enum { READ_AHEAD = 1 << 16, MOST_KEPT = 1 << 20 };

/* Reads up to `size` bytes without the GIL. Their number; 0: end of stream; -1: error set. */
static ssize_t read_some(int fd, char* data, size_t size) {
  for (;;) {
    ssize_t count;
    int error_number;
    Py_BEGIN_ALLOW_THREADS;
    count = read(fd, data, size);
    error_number = errno;
    Py_END_ALLOW_THREADS;
    if (count >= 0) return count;
    if (error_number == EINTR) {
      if (PyErr_CheckSignals() < 0) return -1;
      continue;
    }
    errno = error_number;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
  }
}

/* -1 with an exception set. */
static int check_header(const struct mprun_frame* header) {
  if (header->magic == MPRUN_FRAME_MAGIC && header->size <= MPRUN_MAX_PAYLOAD) return 0;
  PyErr_SetString(PyExc_RuntimeError, "mprun's channel carries something that is not a frame");
  return -1;
}

/* Makes `size` bytes available from `begin` on. 1 done, 0 end of stream, -1 error set. */
static int fill(struct frame_reader* reader, size_t size) {
  const size_t held = reader->end - reader->begin;
  if (held >= size) return 1;
  if (held > 0) memmove(reader->data, reader->data + reader->begin, held);
  reader->begin = 0;
  reader->end = held;
  size_t wanted = size > READ_AHEAD ? size : READ_AHEAD;
  if (held == 0 && reader->capacity > MOST_KEPT && wanted <= MOST_KEPT) free_frames(reader);
  if (reader->capacity < wanted) {
    char* data = realloc(reader->data, wanted);
    if (!data) {
      PyErr_NoMemory();
      return -1;
    }
    reader->data = data;
    reader->capacity = wanted;
  }
  while (reader->end < size) {
    const ssize_t count = read_some(reader->fd, reader->data + reader->end, reader->capacity - reader->end);
    if (count <= 0) return (int)count;
    reader->end += (size_t)count;
  }
  return 1;
}

int next_frame(struct frame_reader* reader, struct mprun_frame* header, const char** payload) {
  int got = fill(reader, sizeof *header);
  if (got <= 0) return got;
  memcpy(header, reader->data + reader->begin, sizeof *header);
  if (check_header(header) < 0) return -1;
  got = fill(reader, sizeof *header + header->size);
  if (got <= 0) return got;
  *payload = reader->data + reader->begin + sizeof *header;
  reader->begin += sizeof *header + header->size;
  return 1;
}

void free_frames(struct frame_reader* reader) {
  free(reader->data);
  *reader = (struct frame_reader){.fd = reader->fd};
}

/* Reads exactly `size` bytes. 1 done, 0 end of stream, -1 error set. */
static int read_exactly(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t count = read_some(fd, data, size);
    if (count <= 0) return (int)count;
    data += count;
    size -= (size_t)count;
  }
  return 1;
}

PyObject* read_frame(PyObject* self, PyObject* args) {
  (void)self;
  int fd;
  if (!PyArg_ParseTuple(args, "i", &fd)) return NULL;
  struct mprun_frame header;
  int got = read_exactly(fd, (char*)&header, sizeof header);
  if (got < 0 || (got > 0 && check_header(&header) < 0)) return NULL;
  if (got == 0) Py_RETURN_NONE;
  PyObject* payload = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)header.size);
  if (!payload) return NULL;
  got = read_exactly(fd, PyBytes_AsString(payload), header.size);
  if (got > 0) return Py_BuildValue("(iN)", (int)header.type, payload);
  Py_DECREF(payload);
  if (got < 0) return NULL;
  Py_RETURN_NONE;
}

/* Held while a frame is written: threads that write at once would mix their frames. A forked process has its own. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

/* Context: child after fork. The thread that wrote is not in this process. */
static void forget_writer(void) { writing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

void protect_frames(void) { pthread_atfork(NULL, NULL, forget_writer); }

/* The writer needs the GIL to go on, so a thread that waits for it releases the GIL. */
static void begin_writing(void) {
  if (pthread_mutex_trylock(&writing) == 0) return;
  Py_BEGIN_ALLOW_THREADS;
  pthread_mutex_lock(&writing);
  Py_END_ALLOW_THREADS;
}

/* Small writes to a pipe with room keep the GIL: releasing it costs more. */
int write_whole(int fd, const char* data, size_t size) {
  int error_number = 0;
  begin_writing();
  while (size > 0 && error_number == 0) {
    ssize_t n = write(fd, data, size);
    if (n >= 0) {
      data += n;
      size -= (size_t)n;
    } else if (errno == EAGAIN) {
      Py_BEGIN_ALLOW_THREADS;
      struct pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
      Py_END_ALLOW_THREADS;
    } else if (errno != EINTR) {
      error_number = errno;
    }
  }
  pthread_mutex_unlock(&writing);
  if (error_number == 0) return 0;
  errno = error_number;
  PyErr_SetFromErrno(PyExc_OSError);
  return -1;
}

PyObject* write_frame(PyObject* self, PyObject* args) {
  (void)self;
  int fd, type;
  const char* data;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "iiy#", &fd, &type, &data, &size)) return NULL;
  if ((uint64_t)size > MPRUN_MAX_PAYLOAD) {
    PyErr_SetString(PyExc_ValueError, "the value is larger than 1 GiB: write it to a file and return its name");
    return NULL;
  }
  const struct mprun_frame header = {(uint32_t)size, MPRUN_FRAME_MAGIC, (uint16_t)type};
  struct byte_buffer out = {0};
  int failed = byte_buffer_append(&out, &header, sizeof header) < 0 || byte_buffer_append(&out, data, (size_t)size) < 0;
  if (!failed) failed = write_whole(fd, out.data, out.size) < 0;
  free(out.data);
  if (failed) return NULL;
  Py_RETURN_NONE;
}
