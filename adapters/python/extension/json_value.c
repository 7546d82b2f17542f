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

char* put_whole_number(char* to, uint64_t number) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  while (count > 0) *to++ = digits[--count];
  return to;
}

static int append_int(struct byte_buffer* buffer, PyObject* value) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return 0;
  if (number == -1 && PyErr_Occurred()) return -1;
  char text[24] = "-";
  const char* end = put_whole_number(text + (number < 0), number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
  return byte_buffer_append(buffer, text, (size_t)(end - text)) < 0 ? -1 : 1;
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

/* One number of at most 18 digits; NULL: it is none. */
static const char* read_whole_number(const char* at, const char* end, long long* number) {
  const char* digits = at;
  if (digits < end && *digits == '-') ++digits;
  const char* stop = digits;
  unsigned long long value = 0;
  for (; stop < end && *stop >= '0' && *stop <= '9' && stop - digits <= 18; ++stop) {
    value = value * 10 + (unsigned)(*stop - '0');
  }
  const long count = stop - digits;
  if (count == 0 || count > 18 || (*digits == '0' && count > 1)) return NULL;
  *number = digits > at ? -(long long)value : (long long)value;
  return stop;
}

PyObject* parse_whole_numbers(const char* json, size_t size, Py_ssize_t count) {
  const char *at = json, *end = json + size;
  if (size < 2 || *at != '[' || count < 1) return NULL;
  PyObject* list = PyList_New(count);
  if (!list) return NULL;
  for (Py_ssize_t i = 0; i < count; ++i) {
    long long number = 0;
    at = read_whole_number(at + 1, end, &number); /* after the bracket, or a comma */
    const int is_next = at && at < end && *at == (i + 1 < count ? ',' : ']');
    PyObject* item = is_next ? PyLong_FromLongLong(number) : NULL;
    if (!item || PyList_SetItem(list, i, item) < 0) {
      Py_DECREF(list);
      return NULL;
    }
  }
  if (at + 1 == end) return list;
  Py_DECREF(list);
  return NULL;
}
