/* The frames between mprun, its hosts and its workers, and the claim table they share. One machine, one
 * build: native byte order, fixed layouts. Plain C, because the worker extension is C; included by
 * the supervisor (C++) and by adapters/python/extension.
 *
 *   mprun -> worker, host    a stream socket, the "channel":  START, TASKS, STOP, FORK, REAP
 *   worker, rank -> mprun    a pipe, "results":               HELLO, STAGE, READY, RESULT, START_FAILED
 *   host -> mprun            its channel:                     HELLO, STAGE, READY, START_FAILED, FORKED, EXITED
 *
 * Results travel by pipe because what a worker wrote there stays readable after it died.
 */
#ifndef MPRUN_WIRE_PROTOCOL_H
#define MPRUN_WIRE_PROTOCOL_H

#include <stdint.h>

#define MPRUN_FRAME_MAGIC 0x6d72U

enum mprun_frame_type {
  MPRUN_START = 1, /* JSON: what to load and how (adapters/python/mprun/worker.py) */
  MPRUN_TASKS = 2, /* mprun_tasks, count x mprun_task, JSON array of the inputs */
  MPRUN_STOP = 3,  /* no payload: finish and exit */
  MPRUN_FORK =
      4, /* JSON {"slot", "env", "cpus", "nodes"}; four descriptors ride along: channel, results, stdout, stderr */
  MPRUN_REAP = 5,          /* int32 pid: the supervisor has seen this process end, its pid may be reused */
  MPRUN_HELLO = 10,        /* JSON {"pid": n, "python": "3.11.2"} */
  MPRUN_READY = 11,        /* no payload: tasks may come */
  MPRUN_RESULT = 12,       /* mprun_result, mprun_tensor records, JSON value or error; a rank's last one counts */
  MPRUN_START_FAILED = 13, /* JSON {"stage", "type", "message", "traceback"} */
  MPRUN_FORKED = 14,       /* JSON {"slot": n, "pid": n} or {"slot": n, "error": "..."} */
  MPRUN_EXITED = 15,       /* JSON {"pid": n, "exit_code": n} or {"pid": n, "signal": n} */
  MPRUN_STAGE = 16,        /* human-readable text: the current stage of the start: "importing job.py" */
};

/* Opens every frame. */
struct mprun_frame {
  uint32_t size; /* bytes of payload after this header, at most MPRUN_MAX_PAYLOAD */
  uint16_t magic;
  uint16_t type;
};
#define MPRUN_MAX_PAYLOAD 0x40000000U /* 1 GiB: a larger value belongs in a file */

/* The exit code of a worker that could no longer use its channel or pipe. */
#define MPRUN_EXIT_CHANNEL_LOST 86

struct mprun_tasks {
  uint32_t position; /* of the first task in this worker's stream of tasks, see the claim table */
  uint32_t count;
};
struct mprun_task {
  uint64_t task;
  uint32_t attempt;
  uint32_t has_no_input; /* 1: it could not be read; the task fails, and nothing is called */
};

struct mprun_result {
  uint32_t position;
  uint32_t failed; /* 0: the payload is the value, 1: it is the error */
  int64_t start;   /* wall clock, nanoseconds since 1970 */
  int64_t duration;
  uint32_t tensors; /* bytes of mprun_tensor records in front of the JSON */
  uint32_t reserved;
};

/* A tensor that the task claims to have written below tensors/ of the run directory; its name follows, with no NUL. */
struct mprun_tensor {
  uint64_t begin, end; /* rows of NAME.npy; 0, 0 for MPRUN_TENSOR_SAFETENSORS */
  uint32_t kind;       /* mprun_tensor_kind */
  uint32_t name_bytes;
};
enum mprun_tensor_kind {
  MPRUN_TENSOR_ROWS = 0,        /* rows begin to end of NAME.npy */
  MPRUN_TENSOR_SAFETENSORS = 1, /* NAME in TASK.safetensors */
};

/* The claim table: one cache line a worker slot, in a memory file that supervisor and workers map.
 *
 * The tasks handed to a worker have positions 0, 1, 2, ... `claim` holds, in one atomic word, the
 * position the worker starts next (upper half) and the first position it may not start (lower
 * half). The supervisor grants by raising the limit; it takes back what was not started by setting
 * next = limit, and the worker skips what it finds taken. So a long task never holds up those queued after it. */
struct mprun_claim_slot {
  uint64_t claim;
  uint64_t reserved[7];
};

static inline uint64_t mprun_claim_make(uint32_t next, uint32_t limit) { return ((uint64_t)next << 32) | limit; }
static inline uint32_t mprun_claim_next(uint64_t claim) { return (uint32_t)(claim >> 32); }
static inline uint32_t mprun_claim_limit(uint64_t claim) { return (uint32_t)claim; }

/* Worker: may the task at `position` start? If so it is claimed. Positions wrap; differences are small. */
static inline int mprun_claim_task(struct mprun_claim_slot* slot, uint32_t position) {
  uint64_t seen = __atomic_load_n(&slot->claim, __ATOMIC_ACQUIRE);
  for (;;) {
    if (mprun_claim_next(seen) != position || mprun_claim_limit(seen) == position) return 0;
    const uint64_t want = mprun_claim_make(position + 1, mprun_claim_limit(seen));
    if (__atomic_compare_exchange_n(&slot->claim, &seen, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 1;
  }
}

/* Supervisor: lets the worker start `count` more tasks. */
static inline void mprun_claim_grant(struct mprun_claim_slot* slot, uint32_t count) {
  uint64_t seen = __atomic_load_n(&slot->claim, __ATOMIC_ACQUIRE);
  uint64_t want;
  do {
    want = mprun_claim_make(mprun_claim_next(seen), mprun_claim_limit(seen) + count);
  } while (!__atomic_compare_exchange_n(&slot->claim, &seen, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* Supervisor: takes back every task the worker has not started; returns how many. */
static inline uint32_t mprun_claim_take_back(struct mprun_claim_slot* slot) {
  uint64_t seen = __atomic_load_n(&slot->claim, __ATOMIC_ACQUIRE);
  uint64_t want;
  do {
    want = mprun_claim_make(mprun_claim_limit(seen), mprun_claim_limit(seen));
  } while (!__atomic_compare_exchange_n(&slot->claim, &seen, want, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return mprun_claim_limit(seen) - mprun_claim_next(seen);
}

#endif /* MPRUN_WIRE_PROTOCOL_H */
