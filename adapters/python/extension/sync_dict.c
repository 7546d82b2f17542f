/* A dict that the processes of a job share: a hash table in their shared memory. One store to a slot adds a key,
 * changes its value or removes it; one store of its offset puts a larger table in the place of a full one. */
#include <errno.h>

#include "sync_lock.h"
#include "sync_memory.h"
#include "sync_pieces.h"
#include "sync_types.h"

enum { FIRST_CAPACITY = 16 };

#define GONE 1U

/* Open addressing. A slot holds an entry, 0, or 1: its entry was removed. */
struct table {
  uint64_t capacity; /* a power of two */
  uint64_t slots[];
};

struct entry {
  uint64_t hash;
  uint64_t serial; /* keys are listed in the order in which they were added */
  uint64_t key_size, value_size;
  char data[]; /* key, value */
};

static uint64_t make_table(uint64_t capacity) {
  const uint64_t size = sizeof(struct table) + capacity * sizeof(uint64_t);
  const uint64_t offset = sync_allocate(size);
  struct table* table = offset != 0 ? sync_at(offset, size) : NULL;
  if (table == NULL) return 0;
  memset(table, 0, size);
  table->capacity = capacity;
  return offset;
}

static int make(void* body, const void* unused) {
  (void)unused;
  return mprun_sync_make_mutex(&((struct mprun_sync_dict*)body)->lock.mutex);
}

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", NULL};
  PyObject* name;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:dict", names, &name)) return -1;
  const struct sync_wanted wanted = {MPRUN_SYNC_DICT, sizeof(struct mprun_sync_dict), sizeof(struct mprun_sync_dict),
                                     make, NULL};
  return sync_bind(self, name, &wanted);
}

/* --- the table: under the dict's lock --- */

/* NULL: the dict has none yet, or it is damaged. */
static struct table* table_of(const struct mprun_sync_dict* dict) {
  struct table* table = sync_at(dict->table, sizeof *table);
  if (table == NULL || table->capacity == 0 || (table->capacity & (table->capacity - 1)) != 0) return NULL;
  if (table->capacity > MPRUN_SYNC_BYTES / sizeof(uint64_t)) return NULL;
  return sync_at(dict->table, sizeof *table + table->capacity * sizeof(uint64_t)) != NULL ? table : NULL;
}

static struct entry* entry_at(uint64_t offset) {
  struct entry* entry = sync_at(offset, sizeof *entry);
  if (entry == NULL || entry->key_size > MPRUN_SYNC_BYTES || entry->value_size > MPRUN_SYNC_BYTES) return NULL;
  return sync_at(offset, sizeof *entry + entry->key_size + entry->value_size) != NULL ? entry : NULL;
}

/* Takes the lock. If its last holder died, counts the table's entries again. False: the lock is damaged. */
static bool enter(struct mprun_sync_dict* dict) {
  const enum sync_entry entry = sync_enter(&dict->lock);
  if (entry != SYNC_RECOVERED) return entry == SYNC_ENTERED;
  const struct table* table = table_of(dict);
  uint64_t count = 0;
  uint64_t used = 0;
  for (uint64_t i = 0; table != NULL && i < table->capacity; ++i) {
    used += table->slots[i] != 0 ? 1 : 0;
    count += table->slots[i] > GONE ? 1 : 0;
  }
  dict->used = used;
  __atomic_store_n(&dict->count, count, __ATOMIC_RELEASE);
  return true;
}

struct key {
  const char* data;
  uint64_t size, hash;
};

static uint64_t hash_of(const char* data, uint64_t size) {
  uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */
  for (uint64_t i = 0; i < size; ++i) hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3ULL;
  return hash ^ (hash >> 32U);
}

/* The slot of the key; NULL: it is not there, and `*vacant` is where it may go (NULL: nowhere). */
static uint64_t* find_slot(struct table* table, const struct key* key, uint64_t** vacant) {
  *vacant = NULL;
  for (uint64_t i = 0; table != NULL && i < table->capacity; ++i) {
    uint64_t* slot = &table->slots[(key->hash + i) & (table->capacity - 1)];
    if (*slot <= GONE && *vacant == NULL) *vacant = slot;
    if (*slot == 0) return NULL;
    const struct entry* entry = *slot > GONE ? entry_at(*slot) : NULL;
    if (entry == NULL || entry->hash != key->hash || entry->key_size != key->size) continue;
    if (memcmp(entry->data, key->data, key->size) == 0) return slot;
  }
  return NULL;
}

static void move_entries(const struct table* from, struct table* to) {
  for (uint64_t i = 0; i < from->capacity; ++i) {
    const struct entry* entry = from->slots[i] > GONE ? entry_at(from->slots[i]) : NULL;
    if (entry == NULL) continue;
    uint64_t at = entry->hash;
    while (to->slots[at & (to->capacity - 1)] != 0) ++at;
    to->slots[at & (to->capacity - 1)] = from->slots[i];
  }
}

/* Makes sure that a key can be added. False: there is no room. */
static bool make_room(struct mprun_sync_dict* dict) {
  const struct table* old = table_of(dict);
  if (old != NULL && (dict->used + 1) * 3 <= old->capacity * 2) return true;
  uint64_t capacity = FIRST_CAPACITY;
  while (capacity < (dict->count + 1) * 3) capacity *= 2;
  const uint64_t offset = make_table(capacity);
  if (offset == 0) return false;
  const uint64_t before = dict->table;
  if (old != NULL) move_entries(old, sync_at(offset, sizeof *old));
  __atomic_store_n(&dict->table, offset, __ATOMIC_RELEASE);
  dict->used = dict->count;
  if (before != 0) sync_release(before);
  return true;
}

/* Releases the lock. */
static PyObject* copy_value_and_leave(struct mprun_sync_dict* dict, const struct entry* entry) {
  const size_t size = entry->value_size;
  const char* data = entry->data + entry->key_size;
  PyObject* bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
  char* to = bytes != NULL ? PyByteArray_AsString(bytes) : NULL;
  if (to == NULL || size < 65536) { /* see sync_copy(); the lock must not be held until the GIL is back */
    if (to != NULL) memcpy(to, data, size);
    sync_leave(&dict->lock);
    return bytes;
  }
  Py_BEGIN_ALLOW_THREADS;
  memcpy(to, data, size);
  sync_leave(&dict->lock);
  Py_END_ALLOW_THREADS;
  return bytes;
}

/* --- methods --- */

static struct mprun_sync_dict* parse_key(PyObject* self, PyObject* given, struct key* key) {
  struct mprun_sync_dict* dict = sync_body(self);
  char* data;
  Py_ssize_t size;
  if (dict == NULL || PyBytes_AsStringAndSize(given, &data, &size) < 0) return NULL;
  *key = (struct key){data, (uint64_t)size, hash_of(data, (uint64_t)size)};
  return dict;
}

/* get_bytes(key) -> bytearray | None */
static PyObject* get_bytes(PyObject* self, PyObject* given) {
  struct key key;
  struct mprun_sync_dict* dict = parse_key(self, given, &key);
  if (dict == NULL) return NULL;
  uint64_t* vacant;
  if (!enter(dict)) return sync_damaged();
  const uint64_t* slot = find_slot(table_of(dict), &key, &vacant);
  if (slot != NULL) return copy_value_and_leave(dict, entry_at(*slot));
  sync_leave(&dict->lock);
  Py_RETURN_NONE;
}

static PyObject* has_key(PyObject* self, PyObject* given) {
  struct key key;
  struct mprun_sync_dict* dict = parse_key(self, given, &key);
  if (dict == NULL) return NULL;
  uint64_t* vacant;
  if (!enter(dict)) return sync_damaged();
  const bool found = find_slot(table_of(dict), &key, &vacant) != NULL;
  sync_leave(&dict->lock);
  return PyBool_FromLong(found);
}

/* 0 with an exception. */
static uint64_t make_entry(const struct key* key, PyObject* given) {
  struct sync_pieces pieces;
  if (sync_pieces_open(&pieces, given) < 0) return 0;
  const uint64_t size = sizeof(struct entry) + key->size + pieces.size;
  const uint64_t offset = sync_allocate(size);
  struct entry* entry = offset != 0 ? sync_at(offset, size) : NULL;
  if (entry != NULL) {
    entry->hash = key->hash;
    entry->key_size = key->size;
    entry->value_size = pieces.size;
    memcpy(entry->data, key->data, key->size);
    sync_pieces_copy(&pieces, entry->data + key->size);
  }
  sync_pieces_close(&pieces);
  if (entry != NULL) return offset;
  sync_no_room(size);
  return 0;
}

/* Under the lock. False: there is no room. `*before`: the entry that was there; 0: none. */
static bool store(struct mprun_sync_dict* dict, const struct key* key, uint64_t offset, uint64_t* before) {
  uint64_t* vacant;
  struct entry* entry = entry_at(offset);
  uint64_t* slot = find_slot(table_of(dict), key, &vacant);
  *before = slot != NULL ? *slot : 0;
  if (slot != NULL) {
    entry->serial = entry_at(*before)->serial;
    __atomic_store_n(slot, offset, __ATOMIC_RELEASE);
    return true;
  }
  if (!make_room(dict)) return false;
  find_slot(table_of(dict), key, &vacant);
  if (vacant == NULL) return false;
  entry->serial = dict->serial++;
  dict->used += *vacant == 0 ? 1 : 0;
  __atomic_store_n(vacant, offset, __ATOMIC_RELEASE);
  __atomic_store_n(&dict->count, dict->count + 1, __ATOMIC_RELEASE);
  return true;
}

/* set_pieces(key, pieces) */
static PyObject* set_pieces(PyObject* self, PyObject* args) {
  PyObject *given, *pieces;
  struct key key;
  if (!PyArg_ParseTuple(args, "OO", &given, &pieces)) return NULL;
  struct mprun_sync_dict* dict = parse_key(self, given, &key);
  const uint64_t offset = dict != NULL ? make_entry(&key, pieces) : 0;
  if (offset == 0) return NULL;
  uint64_t before;
  if (!enter(dict)) return sync_damaged();
  const bool stored = store(dict, &key, offset, &before);
  sync_leave(&dict->lock);
  if (!stored) before = offset;
  if (before != 0) sync_release(before);
  if (!stored) return sync_no_room(dict->count * sizeof(uint64_t));
  Py_RETURN_NONE;
}

/* setdefault_pieces(key, pieces) -> bytearray: what was there | None: it is there now */
static PyObject* setdefault_pieces(PyObject* self, PyObject* args) {
  PyObject *given, *pieces;
  struct key key;
  if (!PyArg_ParseTuple(args, "OO", &given, &pieces)) return NULL;
  struct mprun_sync_dict* dict = parse_key(self, given, &key);
  const uint64_t offset = dict != NULL ? make_entry(&key, pieces) : 0;
  if (offset == 0) return NULL;
  uint64_t* vacant;
  uint64_t before;
  if (!enter(dict)) return sync_damaged();
  const uint64_t* slot = find_slot(table_of(dict), &key, &vacant);
  if (slot != NULL) {
    PyObject* found = copy_value_and_leave(dict, entry_at(*slot));
    sync_release(offset);
    return found;
  }
  const bool stored = store(dict, &key, offset, &before);
  sync_leave(&dict->lock);
  if (stored) Py_RETURN_NONE;
  sync_release(offset);
  return sync_no_room(dict->count * sizeof(uint64_t));
}

/* pop_bytes(key) -> bytearray | None */
static PyObject* pop_bytes(PyObject* self, PyObject* given) {
  struct key key;
  struct mprun_sync_dict* dict = parse_key(self, given, &key);
  if (dict == NULL) return NULL;
  uint64_t* vacant;
  if (!enter(dict)) return sync_damaged();
  uint64_t* slot = find_slot(table_of(dict), &key, &vacant);
  const uint64_t offset = slot != NULL ? *slot : 0;
  const struct entry* entry = slot != NULL ? entry_at(offset) : NULL;
  PyObject* bytes = entry != NULL ? PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)entry->value_size) : NULL;
  if (bytes != NULL) {
    __atomic_store_n(slot, GONE, __ATOMIC_RELEASE);
    __atomic_store_n(&dict->count, dict->count - 1, __ATOMIC_RELEASE);
  }
  sync_leave(&dict->lock);
  if (entry == NULL) Py_RETURN_NONE;
  if (bytes == NULL) return NULL;
  sync_copy(PyByteArray_AsString(bytes), entry->data + entry->key_size, entry->value_size);
  sync_release(offset);
  return bytes;
}

static uint64_t listed_size(const struct entry* entry, bool with_value) {
  return entry->key_size + (with_value ? entry->value_size : 0);
}

/* Writes the entries that fit, one after the other: serial, size of the key, size of the value; key; value. Returns how
 * many bytes all take. */
static uint64_t write_entries(const struct table* table, bool with_values, char* to, uint64_t room) {
  uint64_t total = 0;
  for (uint64_t i = 0; table != NULL && i < table->capacity; ++i) {
    const struct entry* entry = table->slots[i] > GONE ? entry_at(table->slots[i]) : NULL;
    if (entry == NULL) continue;
    const uint64_t size = listed_size(entry, with_values);
    const uint64_t head[3] = {entry->serial, entry->key_size, size - entry->key_size};
    if (to != NULL && total + sizeof head + size <= room) {
      memcpy(to + total, head, sizeof head);
      memcpy(to + total + sizeof head, entry->data, size);
    }
    total += sizeof head + size;
  }
  return total;
}

/* snapshot(with_values) -> bytearray: what write_entries() writes, in no order. Under the lock it makes only one
 * object, of a kind that starts no garbage collection. */
static PyObject* snapshot(PyObject* self, PyObject* with_values) {
  struct mprun_sync_dict* dict = sync_body(self);
  const int with = PyObject_IsTrue(with_values);
  if (dict == NULL || with < 0) return NULL;
  if (!enter(dict)) return sync_damaged();
  const struct table* table = table_of(dict);
  const uint64_t size = write_entries(table, with != 0, NULL, 0);
  PyObject* bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes != NULL) write_entries(table, with != 0, PyByteArray_AsString(bytes), size);
  sync_leave(&dict->lock);
  return bytes;
}

static PyObject* clear(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_dict* dict = sync_body(self);
  if (dict == NULL) return NULL;
  if (!enter(dict)) return sync_damaged();
  const uint64_t offset = dict->table;
  const struct table* table = table_of(dict);
  __atomic_store_n(&dict->table, 0, __ATOMIC_RELEASE);
  dict->used = 0;
  __atomic_store_n(&dict->count, 0, __ATOMIC_RELEASE);
  sync_leave(&dict->lock);
  for (uint64_t i = 0; table != NULL && i < table->capacity; ++i) {
    if (table->slots[i] > GONE) sync_release(table->slots[i]);
  }
  if (offset != 0) sync_release(offset);
  Py_RETURN_NONE;
}

static Py_ssize_t length(PyObject* self) {
  const struct mprun_sync_dict* dict = sync_body(self);
  return dict != NULL ? (Py_ssize_t)__atomic_load_n(&dict->count, __ATOMIC_ACQUIRE) : -1;
}

static PyMethodDef methods[] = {
    {"_get", get_bytes, METH_O, NULL},
    {"_has", has_key, METH_O, NULL},
    {"_set", set_pieces, METH_VARARGS, NULL},
    {"_setdefault", setdefault_pieces, METH_VARARGS, NULL},
    {"_pop", pop_bytes, METH_O, NULL},
    {"_snapshot", snapshot, METH_O, NULL},
    {"clear", clear, METH_NOARGS, "clear()\n\nTakes all keys away, at once."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", sync_name_of, NULL, "The name by which all processes of the job find it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject* make_sync_dict_type(void) {
  static PyType_Slot slots[] = {
      {Py_tp_init, (void*)init},
      {Py_tp_dealloc, (void*)sync_dealloc},
      {Py_tp_methods, methods},
      {Py_tp_getset, attributes},
      {Py_mp_length, (void*)length},
      {Py_sq_length, (void*)length},
      {0, NULL},
  };
  static PyType_Spec spec = {"mprun._mprun.SyncDict", sizeof(struct sync_object), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  return PyType_FromSpec(&spec);
}
