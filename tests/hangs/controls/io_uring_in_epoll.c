/* A loop as libuv's whose io_uring has a timeout to come: the kernel alone knows of it. Without io_uring it only says
 * so. */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Hands one timeout of no completion to the kernel. */
static int start_timeout(int ring, const struct io_uring_params* params, double seconds) {
  const struct __kernel_timespec when = {(long long)seconds, (long long)(1e9 * (seconds - (double)(long long)seconds))};
  const size_t queue_size = params->sq_off.array + params->sq_entries * sizeof(unsigned);
  const int protection = PROT_READ | PROT_WRITE;
  char* const queue = mmap(NULL, queue_size, protection, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entries =
      mmap(NULL, params->sq_entries * sizeof(struct io_uring_sqe), protection, MAP_SHARED, ring, IORING_OFF_SQES);
  if (queue == MAP_FAILED || (void*)entries == MAP_FAILED) return -1;
  entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (unsigned long)&when, .len = 1};
  *(unsigned*)(queue + params->sq_off.array) = 0;
  __atomic_store_n((unsigned*)(queue + params->sq_off.tail), 1, __ATOMIC_RELEASE);
  return syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1 ? 0 : -1;
}

int main(int count, char** arguments) {
  struct io_uring_params params = {0};
  const int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
  if (ring < 0) {
    fprintf(stderr, "no io_uring here: error %d\n", errno);
    puts("done");
    return 0;
  }
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = ring};
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, ring, &event) != 0) return 1;
  if (start_timeout(ring, &params, count > 1 ? atof(arguments[1]) : 30) != 0) return 2;
  int ready = -1;
  do {
    ready = epoll_wait(loop, &event, 1, -1);
  } while (ready < 0 && errno == EINTR); /* the ring's work in this thread may interrupt the call */
  if (ready != 1) return 3;
  puts("done");
  return 0;
}
