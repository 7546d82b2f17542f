/* A barrier between the processes of a job. Each waiting thread has a seat, which is a robust lock: a seat whose holder
 * has died is empty, so that the dead do not count as arrived. One store ends a generation. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>

#include "sync_lock.h"
#include "sync_memory.h"
#include "sync_types.h"

/* Some threads that leave a generation still have their seats when others arrive for the next. */
#define LOOK_AGAIN 0.001 /* seconds */

enum { SEATS_PER_PARTY = 2, MORE_SEATS = 2 };

static struct mprun_sync_seat* seats_of(struct mprun_sync_barrier* barrier) {
  return (struct mprun_sync_seat*)(barrier + 1);
}

static size_t size_for(uint32_t parties) {
  return sizeof(struct mprun_sync_barrier) +
         ((size_t)parties * SEATS_PER_PARTY + MORE_SEATS) * sizeof(struct mprun_sync_seat);
}

static int make(void* body, const void* argument) {
  struct mprun_sync_barrier* barrier = body;
  barrier->parties = *(const uint32_t*)argument;
  barrier->seat_count = barrier->parties * SEATS_PER_PARTY + MORE_SEATS;
  int failed = mprun_sync_make_mutex(&barrier->lock.mutex);
  for (uint32_t i = 0; failed == 0 && i < barrier->seat_count; ++i) {
    failed = mprun_sync_make_mutex(&seats_of(barrier)[i].taken);
  }
  return failed;
}

static int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", "parties", NULL};
  PyObject* name;
  Py_ssize_t given;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Un:barrier", names, &name, &given)) return -1;
  if (given < 1 || given > (Py_ssize_t)MPRUN_SYNC_MOST_PARTIES) {
    PyErr_Format(PyExc_ValueError, "a barrier has 1 to %u parties, not %zd", MPRUN_SYNC_MOST_PARTIES, given);
    return -1;
  }
  const uint32_t parties = (uint32_t)given;
  const struct sync_wanted wanted = {MPRUN_SYNC_BARRIER, size_for(parties), sizeof(struct mprun_sync_barrier), make,
                                     &parties};
  if (sync_bind(self, name, &wanted) < 0) return -1;
  const struct mprun_sync_barrier* barrier = ((struct sync_object*)self)->body;
  if (barrier->parties == parties && barrier->seat_count == parties * SEATS_PER_PARTY + MORE_SEATS &&
      sync_at(sync_offset_of(barrier), size_for(parties)) != NULL) {
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "the barrier %R was made for %u parties, not for %u", name, (unsigned)barrier->parties,
               (unsigned)parties);
  return -1;
}

/* --- seats: under the barrier's lock --- */

static bool is_taken(struct mprun_sync_seat* seat) {
  const uint32_t word = __atomic_load_n(mprun_sync_word(&seat->taken), __ATOMIC_ACQUIRE);
  return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

/* Whether a live thread has the seat for the current generation. */
static bool is_arrived(struct mprun_sync_barrier* barrier, uint32_t index) {
  struct mprun_sync_seat* seat = &seats_of(barrier)[index];
  return seat->generation == barrier->generation && is_taken(seat);
}

static uint32_t count_arrived(struct mprun_sync_barrier* barrier) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < barrier->seat_count; ++i) count += is_arrived(barrier, i) ? 1 : 0;
  return count;
}

static bool has_index(struct mprun_sync_barrier* barrier, uint32_t index) {
  for (uint32_t i = 0; i < barrier->seat_count; ++i) {
    if (seats_of(barrier)[i].index == index && is_arrived(barrier, i)) return true;
  }
  return false;
}

/* Takes a seat; NULL: all are taken, by threads that are about to leave, or `*damaged`. */
static struct mprun_sync_seat* take_seat(struct mprun_sync_barrier* barrier, bool* damaged) {
  const uint32_t arrived = count_arrived(barrier);
  for (uint32_t i = 0; i < barrier->seat_count; ++i) {
    struct mprun_sync_seat* seat = &seats_of(barrier)[i];
    int failed = pthread_mutex_trylock(&seat->taken);
    if (failed == EOWNERDEAD) failed = pthread_mutex_consistent(&seat->taken);
    if (failed == EBUSY || failed == EDEADLK) continue;
    *damaged = failed != 0;
    if (*damaged) return NULL;
    seat->generation = barrier->generation - 1; /* not arrived yet */
    seat->index = arrived;
    for (uint32_t index = 0; has_index(barrier, seat->index); ++index) seat->index = index; /* a thread has died */
    seat->broken = 0;
    __atomic_store_n(&seat->generation, barrier->generation, __ATOMIC_RELEASE);
    return seat;
  }
  return NULL;
}

static void end_generation(struct mprun_sync_barrier* barrier, uint32_t broken) {
  for (uint32_t i = 0; i < barrier->seat_count; ++i) {
    if (is_arrived(barrier, i)) seats_of(barrier)[i].broken = broken;
  }
  __atomic_store_n(&barrier->generation, barrier->generation + 1, __ATOMIC_RELEASE);
  sync_wake(&barrier->generation, INT_MAX);
}

static void break_up(struct mprun_sync_barrier* barrier) {
  barrier->broken = 1;
  end_generation(barrier, 1);
}

/* --- methods --- */

/* Waits until the generation is over. 1: it went through; 0: broken; -1: an exception is set, by a signal handler or
 * for the damaged lock. */
static int wait_on_seat(struct mprun_sync_barrier* barrier, const struct mprun_sync_seat* seat, int64_t deadline) {
  const uint32_t generation = seat->generation;
  while (__atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE) == generation) {
    const int slept = sync_sleep(&barrier->generation, generation, deadline);
    if (slept == -1) return -1;
    if (slept == 0) continue;
    if (sync_enter(&barrier->lock) == SYNC_DAMAGED) {
      sync_damaged();
      return -1;
    }
    if (barrier->generation == generation) break_up(barrier);
    sync_leave(&barrier->lock);
  }
  return seat->broken == 0 ? 1 : 0;
}

/* wait(timeout) -> int: in order of arrival | None: it is broken */
static PyObject* wait_for_all(PyObject* self, PyObject* timeout) {
  struct mprun_sync_barrier* barrier = sync_body(self);
  int64_t deadline;
  if (barrier == NULL || sync_deadline(timeout, &deadline) < 0) return NULL;
  struct mprun_sync_seat* seat = NULL;
  bool is_broken = false;
  bool damaged = false;
  for (;;) {
    if (sync_enter(&barrier->lock) == SYNC_DAMAGED) return sync_damaged();
    is_broken = barrier->broken != 0;
    if (!is_broken) seat = take_seat(barrier, &damaged);
    if (seat != NULL && count_arrived(barrier) >= barrier->parties) end_generation(barrier, 0);
    const uint32_t generation = barrier->generation;
    sync_leave(&barrier->lock);
    if (damaged) return sync_damaged();
    if (is_broken) Py_RETURN_NONE;
    if (seat != NULL) break;
    /* More threads than parties use it, and not all that leave have run yet. */
    int64_t soon;
    sync_after(LOOK_AGAIN, &soon);
    if (sync_sleep(&barrier->generation, generation, soon < deadline ? soon : deadline) == -1) return NULL;
    if (deadline < soon) Py_RETURN_NONE;
  }
  const uint32_t index = seat->index;
  const int through = wait_on_seat(barrier, seat, deadline);
  const int failed = pthread_mutex_unlock(&seat->taken);
  if (through < 0) return NULL;
  if (failed != 0) return sync_damaged();
  if (through == 0) Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(index);
}

static PyObject* abort_all(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_barrier* barrier = sync_body(self);
  if (barrier == NULL) return NULL;
  if (sync_enter(&barrier->lock) == SYNC_DAMAGED) return sync_damaged();
  break_up(barrier);
  sync_leave(&barrier->lock);
  Py_RETURN_NONE;
}

static PyObject* reset(PyObject* self, PyObject* unused) {
  (void)unused;
  struct mprun_sync_barrier* barrier = sync_body(self);
  if (barrier == NULL) return NULL;
  if (sync_enter(&barrier->lock) == SYNC_DAMAGED) return sync_damaged();
  barrier->broken = 0;
  end_generation(barrier, 1);
  sync_leave(&barrier->lock);
  Py_RETURN_NONE;
}

static PyObject* parties_of(PyObject* self, void* unused) {
  (void)unused;
  struct mprun_sync_barrier* barrier = sync_body(self);
  return barrier != NULL ? PyLong_FromUnsignedLong(barrier->parties) : NULL;
}

static PyObject* waiting(PyObject* self, void* unused) {
  (void)unused;
  struct mprun_sync_barrier* barrier = sync_body(self);
  if (barrier == NULL) return NULL;
  if (sync_enter(&barrier->lock) == SYNC_DAMAGED) return sync_damaged();
  const uint32_t count = count_arrived(barrier);
  sync_leave(&barrier->lock);
  return PyLong_FromUnsignedLong(count);
}

static PyObject* broken(PyObject* self, void* unused) {
  (void)unused;
  struct mprun_sync_barrier* barrier = sync_body(self);
  return barrier != NULL ? PyBool_FromLong(__atomic_load_n(&barrier->broken, __ATOMIC_ACQUIRE) != 0) : NULL;
}

static PyMethodDef methods[] = {
    {"_wait", wait_for_all, METH_O, NULL},
    {"abort", abort_all, METH_NOARGS,
     "abort()\n\nBreaks it: all present and later waits raise threading.BrokenBarrierError, until reset()."},
    {"reset", reset, METH_NOARGS,
     "reset()\n\nMakes it as good as new; present waits raise threading.BrokenBarrierError."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"name", sync_name_of, NULL, "The name by which all processes of the job find it.", NULL},
    {"parties", parties_of, NULL, "How many have to arrive.", NULL},
    {"n_waiting", waiting, NULL, "How many wait now, without those that died while waiting.", NULL},
    {"broken", broken, NULL, "Whether a wait took too long, or abort() was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject* make_sync_barrier_type(void) { return sync_make_type("mprun._mprun.SyncBarrier", init, methods, attributes); }
