/* Frames (core/wire/protocol.h) between this process and the supervisor. */
#ifndef MPRUN_FRAMES_H
#define MPRUN_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "wire/protocol.h"

/* Reads frames ahead: many that wait cost one system call. Zeros, but for the descriptor, at first. */
struct frame_reader {
  int fd;
  char* data;
  size_t begin, end, capacity; /* of `data`, bytes from `begin` to `end` are not used yet */
};

/* 1: the next frame; its payload is valid until the next call. 0: end of stream; -1: error set. */
int next_frame(struct frame_reader* reader, struct mprun_frame* header, const char** payload);
void free_frames(struct frame_reader* reader);

/* Writes whole frames at once. 0, or -1 with an exception set. Signal handlers run after it: they may raise, or write a
 * frame themselves. */
int write_whole(int fd, const char* data, size_t size);

/* Called once, before any frame: frames of several threads do not mix, and a fork while one is written does no harm. */
void protect_frames(void);

/* write_frame(fd, type, payload: bytes): one frame, written whole. */
PyObject* write_frame(PyObject* self, PyObject* args);

/* read_frame(fd) -> (type, payload) or None at end of stream. Reads nothing ahead. */
PyObject* read_frame(PyObject* self, PyObject* args);

#endif
