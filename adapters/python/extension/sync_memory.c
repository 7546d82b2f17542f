#include "sync_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync_lock.h"

/* The memory of this process and those that it forks. */
static struct mprun_sync* memory;
static bool damaged; /* the lock of the memory could not be taken */

/* The header of every allocation. */
struct block {
  uint64_t next; /* in the free list */
  uint32_t size_class;
  uint32_t unused;
};

/* --- finding it --- */

/* If mprun has ended, the path may name another file: no open may block, and only memory of a job is used. */
static struct mprun_sync* map_job(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  struct stat info;
  void* mapped = MAP_FAILED;
  const int seals = fcntl(fd, F_GET_SEALS); /* fails for what is not a memory file */
  const bool is_sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0;
  if (is_sealed && (uint64_t)info.st_size >= MPRUN_SYNC_LEAST_BYTES) {
    mapped = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (mapped == MAP_FAILED) return NULL;
  struct mprun_sync* found = mapped;
  if (found->magic == MPRUN_SYNC_MAGIC && found->size == (uint64_t)info.st_size) return found;
  munmap(mapped, (size_t)info.st_size);
  return NULL;
}

/* Memory for a process without mprun. NULL with errno. */
static struct mprun_sync* make_own(void) {
  void* mapped =
      mmap(NULL, MPRUN_SYNC_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  errno = mprun_sync_make(mapped, MPRUN_SYNC_BYTES);
  if (errno == 0) {
    sync_limit_sleeps();
    return mapped;
  }
  munmap(mapped, MPRUN_SYNC_BYTES);
  return NULL;
}

static int find_memory(void) {
  if (__atomic_load_n(&memory, __ATOMIC_ACQUIRE) != NULL) return 0;
  const char* path = getenv(MPRUN_SYNC_VARIABLE);
  const bool is_of_job = path != NULL && *path != '\0';
  errno = 0;
  struct mprun_sync* found = is_of_job ? map_job(path) : make_own();
  if (found == NULL && is_of_job) {
    PyErr_Format(PyExc_OSError, "the memory that the processes of this job share (%s=%s) cannot be mapped: %s",
                 MPRUN_SYNC_VARIABLE, path, errno != 0 ? strerror(errno) : "mprun has ended");
    return -1;
  }
  if (found == NULL) {
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
  }
  struct mprun_sync* none = NULL; /* without a GIL, another thread may be first */
  if (!__atomic_compare_exchange_n(&memory, &none, found, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    munmap(found, found->size);
  }
  return 0;
}

void* sync_at(uint64_t offset, uint64_t size) {
  if (offset < sizeof *memory || offset > memory->size || size > memory->size - offset || offset % 8 != 0) return NULL;
  return (char*)memory + offset;
}

uint64_t sync_offset_of(const void* place) { return (uint64_t)((const char*)place - (const char*)memory); }

PyObject* sync_damaged(void) {
  PyErr_SetString(PyExc_RuntimeError, "the memory that the processes of this job share was overwritten by one of them");
  return NULL;
}

static bool enter_memory(void) {
  const bool is_damaged = sync_enter(&memory->lock) == SYNC_DAMAGED;
  __atomic_store_n(&damaged, is_damaged, __ATOMIC_RELAXED);
  return !is_damaged;
}

/* --- allocating: under memory->lock --- */

/* Four size classes for every power of two, from 64 bytes on. */
static uint64_t size_of_class(uint32_t number) { return (uint64_t)(4 + number % 4) << (4 + number / 4); }

static uint32_t class_for(uint64_t size) {
  uint32_t number = 0;
  while (number < MPRUN_SYNC_CLASSES && size_of_class(number) < size) ++number;
  return number;
}

static uint64_t take_free(uint32_t number) {
  const uint64_t offset = memory->free[number];
  const struct block* block = offset != 0 ? sync_at(offset, sizeof *block) : NULL;
  if (block == NULL || block->size_class != number) return 0;
  __atomic_store_n(&memory->free[number], block->next, __ATOMIC_RELEASE);
  return offset;
}

static uint64_t take_fresh(uint32_t number) {
  const uint64_t offset = memory->end;
  const uint64_t size = size_of_class(number);
  struct block* block = sync_at(offset, size);
  if (block == NULL) return 0;
  block->size_class = number;
  __atomic_store_n(&memory->end, offset + size, __ATOMIC_RELEASE);
  return offset;
}

/* 0: there is no room. */
static uint64_t allocate(uint64_t size) {
  const uint32_t least = class_for(size + sizeof(struct block));
  if (size > memory->size || least >= MPRUN_SYNC_CLASSES) return 0;
  uint64_t offset = take_free(least);
  if (offset == 0) offset = take_fresh(least);
  for (uint32_t number = least + 1; offset == 0 && number < MPRUN_SYNC_CLASSES; ++number) offset = take_free(number);
  return offset != 0 ? offset + sizeof(struct block) : 0;
}

uint64_t sync_allocate(uint64_t size) {
  if (!enter_memory()) return 0;
  const uint64_t offset = allocate(size);
  sync_leave(&memory->lock);
  return offset;
}

PyObject* sync_no_room(uint64_t size) {
  if (__atomic_load_n(&damaged, __ATOMIC_RELAXED)) return sync_damaged();
  return PyErr_Format(
      PyExc_MemoryError,
      "no room for %llu bytes in the %llu MiB that the queues and dicts of a job share: take items out, "
      "or keep large arrays in files and pass their names",
      (unsigned long long)size, (unsigned long long)(memory->size >> 20U));
}

void sync_release(uint64_t offset) {
  struct block* block = sync_at(offset - sizeof *block, sizeof *block);
  if (block == NULL || block->size_class >= MPRUN_SYNC_CLASSES || !enter_memory()) return;
  block->next = memory->free[block->size_class];
  __atomic_store_n(&memory->free[block->size_class], offset - sizeof *block, __ATOMIC_RELEASE);
  sync_leave(&memory->lock);
}

/* --- names --- */

static const char* const kinds[] = {"?", "counter", "lock", "barrier", "queue", "dict"};

static const char* kind_name(uint32_t kind) { return kinds[kind < sizeof kinds / sizeof *kinds ? kind : 0]; }

/* Names are never removed, so that they can be read while others are added. */
static struct mprun_sync_name* find_name(const char* name) {
  uint32_t used = __atomic_load_n(&memory->used, __ATOMIC_ACQUIRE);
  if (used > MPRUN_SYNC_NAMES) used = MPRUN_SYNC_NAMES;
  for (uint32_t i = 0; i < used; ++i) {
    if (strncmp(memory->names[i].name, name, MPRUN_SYNC_NAME) == 0) return &memory->names[i];
  }
  return NULL;
}

/* Under memory->lock. 0; ENOSPC: there are too many; ENOMEM: there is no room; or why the body could not be made. A
 * process that dies here leaves an allocation, and no name. */
static int add_name(const char* name, const struct sync_wanted* wanted) {
  const uint32_t used = memory->used;
  if (used >= MPRUN_SYNC_NAMES) return ENOSPC;
  const uint64_t offset = allocate(wanted->size);
  if (offset == 0) return ENOMEM;
  void* body = (char*)memory + offset;
  memset(body, 0, wanted->size);
  const int failed = wanted->make != NULL ? wanted->make(body, wanted->argument) : 0;
  if (failed != 0) return failed;
  struct mprun_sync_name* entry = &memory->names[used];
  entry->kind = wanted->kind;
  entry->body = offset;
  strncpy(entry->name, name, MPRUN_SYNC_NAME - 1);
  __atomic_store_n(&memory->used, used + 1, __ATOMIC_RELEASE);
  return 0;
}

static PyObject* cannot_add(int failed, uint64_t size) {
  if (failed == ENOMEM) return sync_no_room(size);
  if (failed == ENOSPC) {
    return PyErr_Format(
        PyExc_MemoryError,
        "the job has %u named counters, locks, barriers, queues and dicts already: use one dict instead "
        "of many names",
        MPRUN_SYNC_NAMES);
  }
  errno = failed;
  return PyErr_SetFromErrno(PyExc_OSError);
}

/* NULL with ValueError: it cannot be a name. */
static const char* check_name(PyObject* name) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text == NULL) return NULL;
  if (size == 0 || (size_t)size >= MPRUN_SYNC_NAME || strlen(text) != (size_t)size) {
    PyErr_Format(PyExc_ValueError, "%R cannot be a name: it must have 1 to %u bytes of UTF-8, without NUL", name,
                 MPRUN_SYNC_NAME - 1);
    return NULL;
  }
  return text;
}

static void* open_name(PyObject* name, const struct sync_wanted* wanted) {
  const char* text = check_name(name);
  if (text == NULL || find_memory() < 0) return NULL;
  struct mprun_sync_name* entry = find_name(text);
  if (entry == NULL) {
    if (!enter_memory()) return (void*)sync_damaged();
    const int failed = find_name(text) != NULL ? 0 : add_name(text, wanted);
    sync_leave(&memory->lock);
    if (failed != 0) return (void*)cannot_add(failed, wanted->size);
    entry = find_name(text);
  }
  if (entry == NULL) return (void*)sync_damaged();
  if (entry->kind != wanted->kind) {
    PyErr_Format(PyExc_TypeError, "\"%s\" is a %s of this job already, so it cannot be a %s: choose another name", text,
                 kind_name(entry->kind), kind_name(wanted->kind));
    return NULL;
  }
  void* body = sync_at(entry->body, wanted->least);
  return body != NULL ? body : (void*)sync_damaged();
}

void* sync_body(PyObject* self) {
  void* body = ((struct sync_object*)self)->body;
  if (body == NULL) PyErr_SetString(PyExc_RuntimeError, "it has no name: its __init__ was not called");
  return body;
}

int sync_bind(PyObject* self, PyObject* name, const struct sync_wanted* wanted) {
  struct sync_object* object = (struct sync_object*)self;
  void* body = open_name(name, wanted);
  if (body == NULL) return -1;
  PyObject* old = object->name;
  object->name = Py_NewRef(name);
  object->body = body;
  Py_XDECREF(old);
  return 0;
}

void sync_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(((struct sync_object*)self)->name);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* sync_name_of(PyObject* self, void* unused) {
  (void)unused;
  PyObject* name = ((struct sync_object*)self)->name;
  return Py_NewRef(name != NULL ? name : Py_None);
}

PyObject* sync_make_type(const char* name, initproc init, PyMethodDef* methods, PyGetSetDef* attributes) {
  PyType_Slot slots[] = {
      {Py_tp_init, (void*)init},
      {Py_tp_dealloc, (void*)sync_dealloc},
      {Py_tp_methods, methods},
      {Py_tp_getset, attributes},
      {0, NULL},
  };
  PyType_Spec spec = {name, sizeof(struct sync_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return PyType_FromSpec(&spec);
}
