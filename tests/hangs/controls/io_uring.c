/* Waits for a timeout of io_uring: the kernel alone knows that it will come. Without io_uring it only says so. */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Queues one timeout of one completion; what the entry points to must last. */
static int queue_timeout(int ring, const struct io_uring_params* params, const struct __kernel_timespec* when) {
  const size_t queue_size = params->sq_off.array + params->sq_entries * sizeof(unsigned);
  const size_t entries_size = params->sq_entries * sizeof(struct io_uring_sqe);
  const int protection = PROT_READ | PROT_WRITE;
  char* const queue = mmap(NULL, queue_size, protection, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entries = mmap(NULL, entries_size, protection, MAP_SHARED, ring, IORING_OFF_SQES);
  if (queue == MAP_FAILED || (void*)entries == MAP_FAILED) return -1;
  entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (unsigned long)when, .len = 1};
  *(unsigned*)(queue + params->sq_off.array) = 0;
  __atomic_store_n((unsigned*)(queue + params->sq_off.tail), 1, __ATOMIC_RELEASE);
  return 0;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const struct __kernel_timespec when = {(long long)seconds, (long long)(1e9 * (seconds - (double)(long long)seconds))};
  struct io_uring_params params = {0};
  const int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
  if (ring < 0) {
    fprintf(stderr, "no io_uring here: error %d\n", errno);
    puts("done");
    return 0;
  }
  if (queue_timeout(ring, &params, &when) != 0) return 1;
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return 2;
  puts("done");
  return 0;
}
