/* A first-in, first-out queue between the processes of a job: a list in their shared memory. One store puts an item, by
 * making the list reach it; one store takes it, by making the list begin after it. */
#include <errno.h>

#include "sync_lock.h"
#include "sync_memory.h"
#include "sync_pieces.h"
#include "sync_types.h"

struct item {
  uint64_t next;
  uint64_t size;
  char data[];
};

static int make(void* body, const void* argument) {
  struct mprun_sync_queue* queue = body;
  queue->most = *(const uint64_t*)argument;
  return mprun_sync_make_mutex(&queue->lock.mutex);
}

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", "maxsize", NULL};
  PyObject* name;
  Py_ssize_t most = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|n:queue", names, &name, &most)) return -1;
  const uint64_t limit = most > 0 ? (uint64_t)most : 0;
  const struct sync_wanted wanted = {MPRUN_SYNC_QUEUE, sizeof(struct mprun_sync_queue), sizeof(struct mprun_sync_queue),
                                     make, &limit};
  if (sync_bind(self, name, &wanted) < 0) return -1;
  const struct mprun_sync_queue* queue = ((struct sync_object*)self)->body;
  if (queue->most == limit) return 0;
  PyErr_Format(PyExc_ValueError, "the queue %R was made with maxsize=%llu: it cannot have maxsize=%llu", name,
               (unsigned long long)queue->most, (unsigned long long)limit);
  return -1;
}

/* --- the list: under its lock --- */

static struct item* item_at(uint64_t offset) {
  struct item* item = sync_at(offset, sizeof *item);
  return item != NULL && sync_at(offset, sizeof *item + item->size) != NULL ? item : NULL;
}

/* Takes the lock. If its last holder died, finds the list's end and counts it again. False: the lock is damaged. */
static bool enter(struct mprun_sync_queue* queue) {
  const enum sync_entry entry = sync_enter(&queue->lock);
  if (entry != SYNC_RECOVERED) return entry == SYNC_ENTERED;
  const uint64_t most = MPRUN_SYNC_BYTES / sizeof(struct item);
  uint64_t count = 0;
  for (uint64_t at = queue->first; at != 0 && count < most;) {
    const struct item* item = item_at(at);
    if (item == NULL) break;
    queue->last = at;
    at = item->next;
    ++count;
  }
  __atomic_store_n(&queue->count, count, __ATOMIC_RELEASE);
  return true;
}

static bool is_full(const struct mprun_sync_queue* queue) { return queue->most != 0 && queue->count >= queue->most; }

static bool append(struct mprun_sync_queue* queue, uint64_t offset) {
  struct item* last = queue->first != 0 ? item_at(queue->last) : NULL;
  if (queue->first != 0 && last == NULL) return false;
  __atomic_store_n(last != NULL ? &last->next : &queue->first, offset, __ATOMIC_RELEASE);
  queue->last = offset;
  __atomic_store_n(&queue->count, queue->count + 1, __ATOMIC_RELEASE);
  return true;
}

static struct item* take_first(struct mprun_sync_queue* queue) {
  struct item* item = item_at(queue->first);
  if (item == NULL) return NULL;
  __atomic_store_n(&queue->first, item->next, __ATOMIC_RELEASE);
  __atomic_store_n(&queue->count, queue->count - 1, __ATOMIC_RELEASE);
  return item;
}

/* --- waiting --- */

/* Takes the lock when there is room, or an item. 1; 0: not in time; -1: an exception is set, by a signal handler or for
 * the damaged lock. */
static int enter_when(struct mprun_sync_queue* queue, bool wants_room, int64_t deadline) {
  uint32_t* sequence = wants_room ? &queue->room : &queue->items;
  int slept = 0;
  for (bool waited = false;; waited = true) {
    const uint32_t seen = waited ? sync_announce(sequence) : 0;
    if (!enter(queue)) {
      sync_damaged();
      return -1;
    }
    if (wants_room ? !is_full(queue) : queue->first != 0) return 1;
    sync_leave(&queue->lock);
    if (slept != 0) {
      sync_notify(sequence); /* a wake-up may have come here: pass it on */
      return slept == ETIMEDOUT ? 0 : -1;
    }
    if (deadline == 0) return 0;
    if (waited) slept = sync_sleep(sequence, seen, deadline);
    if (slept == -1) {
      sync_notify(sequence);
      return -1;
    }
  }
}

/* --- methods --- */

/* put_pieces(pieces, block, timeout) -> bool */
static PyObject* put_pieces(PyObject* self, PyObject* args) {
  struct mprun_sync_queue* queue = sync_body(self);
  PyObject *given, *timeout;
  int block;
  int64_t deadline;
  if (queue == NULL || !PyArg_ParseTuple(args, "OpO", &given, &block, &timeout)) return NULL;
  if (sync_deadline(timeout, &deadline) < 0) return NULL;
  if (!block) deadline = 0;
  if (deadline == 0 && queue->most != 0 && __atomic_load_n(&queue->count, __ATOMIC_ACQUIRE) >= queue->most) {
    Py_RETURN_FALSE;
  }
  struct sync_pieces pieces;
  if (sync_pieces_open(&pieces, given) < 0) return NULL;
  const uint64_t offset = sync_allocate(sizeof(struct item) + pieces.size);
  struct item* item = offset != 0 ? sync_at(offset, sizeof *item + pieces.size) : NULL;
  if (item == NULL) {
    sync_pieces_close(&pieces);
    return sync_no_room(pieces.size);
  }
  item->next = 0;
  item->size = pieces.size;
  sync_pieces_copy(&pieces, item->data);
  sync_pieces_close(&pieces);
  const int entered = enter_when(queue, true, deadline);
  const bool done = entered == 1 && append(queue, offset);
  if (entered == 1) sync_leave(&queue->lock);
  if (done) {
    sync_notify(&queue->items);
    Py_RETURN_TRUE;
  }
  sync_release(offset);
  if (entered == 1) return sync_damaged();
  if (entered < 0) return NULL;
  Py_RETURN_FALSE;
}

/* get_bytes(block, timeout) -> bytearray | None */
static PyObject* get_bytes(PyObject* self, PyObject* args) {
  struct mprun_sync_queue* queue = sync_body(self);
  PyObject* timeout;
  int block;
  int64_t deadline;
  if (queue == NULL || !PyArg_ParseTuple(args, "pO", &block, &timeout)) return NULL;
  if (sync_deadline(timeout, &deadline) < 0) return NULL;
  const int entered = enter_when(queue, false, block ? deadline : 0);
  if (entered < 0) return NULL;
  if (entered == 0) Py_RETURN_NONE;
  /* Allocates first: an item that is taken must not get lost for lack of memory. */
  const struct item* first = item_at(queue->first);
  const Py_ssize_t size = first != NULL ? (Py_ssize_t)first->size : 0;
  PyObject* bytes = first != NULL ? PyByteArray_FromStringAndSize(NULL, size) : NULL;
  const struct item* item = bytes != NULL ? take_first(queue) : NULL;
  sync_leave(&queue->lock);
  if (first == NULL) return sync_damaged();
  if (item == NULL) return NULL;
  sync_copy(PyByteArray_AsString(bytes), item->data, (size_t)size);
  sync_release(sync_offset_of(item));
  if (queue->most != 0) sync_notify(&queue->room);
  return bytes;
}

static PyObject* qsize(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_queue* queue = sync_body(self);
  return queue != NULL ? PyLong_FromUnsignedLongLong(__atomic_load_n(&queue->count, __ATOMIC_ACQUIRE)) : NULL;
}

static PyObject* maxsize(PyObject* self, void* unused) {
  (void)unused;
  struct mprun_sync_queue* queue = sync_body(self);
  return queue != NULL ? PyLong_FromUnsignedLongLong(queue->most) : NULL;
}

static PyMethodDef methods[] = {
    {"_put", put_pieces, METH_VARARGS, NULL},
    {"_get", get_bytes, METH_VARARGS, NULL},
    {"qsize", qsize, METH_NOARGS, "qsize() -> int\n\nHow many items are in it now."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", sync_name_of, NULL, "The name by which all processes of the job find it.", NULL},
    {"maxsize", maxsize, NULL, "How many items fit; 0: as many as there is memory for.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject* make_sync_queue_type(void) { return sync_make_type("mprun._mprun.SyncQueue", init, methods, attributes); }
