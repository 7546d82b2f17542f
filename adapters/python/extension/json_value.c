#include "json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int byte_buffer_reserve(struct byte_buffer* buffer, size_t more) {
  if (buffer->capacity - buffer->size >= more) return 0;
  size_t wanted = buffer->capacity ? buffer->capacity * 2 : 4096;
  if (wanted < buffer->size + more) wanted = buffer->size + more;
  char* data = realloc(buffer->data, wanted);
  if (!data) {
    PyErr_NoMemory();
    return -1;
  }
  buffer->data = data;
  buffer->capacity = wanted;
  return 0;
}

int byte_buffer_append(struct byte_buffer* buffer, const void* data, size_t size) {
  if (byte_buffer_reserve(buffer, size) < 0) return -1;
  memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
  return 0;
}

static int append_text(struct byte_buffer* buffer, const char* text) {
  return byte_buffer_append(buffer, text, strlen(text)) < 0 ? -1 : 1;
}

static int append_int(struct byte_buffer* buffer, PyObject* value) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return 0;
  if (number == -1 && PyErr_Occurred()) return -1;
  char digits[24];
  char* end = digits + sizeof digits;
  char* at = end;
  unsigned long long rest = number < 0 ? 0ULL - (unsigned long long)number : (unsigned long long)number;
  do {
    *--at = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (number < 0) *--at = '-';
  return byte_buffer_append(buffer, at, (size_t)(end - at)) < 0 ? -1 : 1;
}

static int append_float(struct byte_buffer* buffer, PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (isnan(number)) return append_text(buffer, "\"NaN\"");
  if (isinf(number)) return append_text(buffer, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
  char* text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
  if (!text) return -1;
  const int done = append_text(buffer, text);
  PyMem_Free(text);
  return done;
}

static int append_str(struct byte_buffer* buffer, PyObject* value) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value, &size);
  if (!text) { /* lone surrogates */
    PyErr_Clear();
    return 0;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\') return 0;
  }
  if (byte_buffer_reserve(buffer, (size_t)size + 2) < 0) return -1;
  buffer->data[buffer->size++] = '"';
  memcpy(buffer->data + buffer->size, text, (size_t)size);
  buffer->size += (size_t)size;
  buffer->data[buffer->size++] = '"';
  return 1;
}

int append_simple_json(struct byte_buffer* buffer, PyObject* value) {
  if (value == Py_None) return append_text(buffer, "null");
  if (value == Py_True) return append_text(buffer, "true");
  if (value == Py_False) return append_text(buffer, "false");
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyLong_Type) return append_int(buffer, value);
  if (type == &PyFloat_Type) return append_float(buffer, value);
  if (type == &PyUnicode_Type) return append_str(buffer, value);
  return 0;
}
