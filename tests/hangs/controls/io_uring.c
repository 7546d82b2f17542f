/* Waits for a timeout of io_uring, of which the kernel alone knows: in io_uring_enter(); with "epoll" in a loop as
 * libuv's; with "repeats" there for a timeout that comes twice from one request. Without io_uring it reports that. */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMEOUT_MULTISHOT (1U << 6) /* since Linux 6.4; older ones complete such a request at once, with an error */

struct ring {
  int fd;
  struct io_uring_params params;
  char* queue;
};

/* Queues one timeout; what the entry points to must last. */
static int queue_timeout(struct ring* ring, const struct __kernel_timespec* when, int repeats) {
  const struct io_sqring_offsets* const at = &ring->params.sq_off;
  const size_t submissions_size = at->array + ring->params.sq_entries * sizeof(unsigned);
  const size_t completions_size = ring->params.cq_off.cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe);
  const size_t queue_size = submissions_size > completions_size ? submissions_size : completions_size;
  const size_t entries_size = ring->params.sq_entries * sizeof(struct io_uring_sqe);
  const int protection = PROT_READ | PROT_WRITE;
  ring->queue = mmap(NULL, queue_size, protection, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entries = mmap(NULL, entries_size, protection, MAP_SHARED, ring->fd, IORING_OFF_SQES);
  if (ring->queue == MAP_FAILED || (void*)entries == MAP_FAILED) return -1;
  entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (unsigned long)when, .len = 1};
  if (repeats) entries[0].timeout_flags = TIMEOUT_MULTISHOT;
  *(unsigned*)(ring->queue + at->array) = 0;
  __atomic_store_n((unsigned*)(ring->queue + at->tail), 1, __ATOMIC_RELEASE);
  return 0;
}

/* Waits for so many completions and fetches each. The kernel may know no timeouts that come twice. */
static int wait_in_loop(const struct ring* ring, int completions) {
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = ring->fd};
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, ring->fd, &event) != 0) return -1;
  if (syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0) != 1) return -1;
  for (int i = 0; i < completions; ++i) {
    int ready = -1;
    do {
      ready = epoll_wait(loop, &event, 1, -1);
    } while (ready < 0 && errno == EINTR); /* the ring's work in this thread may interrupt the call */
    if (ready != 1) return -1;
    const struct io_uring_cqe* const completed = (const struct io_uring_cqe*)(ring->queue + ring->params.cq_off.cqes);
    __atomic_fetch_add((unsigned*)(ring->queue + ring->params.cq_off.head), 1, __ATOMIC_RELEASE);
    if (completed->res == -EINVAL) return 0;
  }
  return 0;
}

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  const char* const way = count > 2 ? arguments[2] : "";
  const struct __kernel_timespec when = {(long long)seconds, (long long)(1e9 * (seconds - (double)(long long)seconds))};
  const int repeats = strcmp(way, "repeats") == 0;
  struct ring ring = {.fd = -1};
  ring.fd = (int)syscall(SYS_io_uring_setup, 1, &ring.params);
  if (ring.fd < 0) {
    fprintf(stderr, "no io_uring here: error %d\n", errno);
    puts("done");
    return 0;
  }
  if (queue_timeout(&ring, &when, repeats) != 0) return 1;
  if (way[0] != '\0') {
    if (wait_in_loop(&ring, repeats ? 2 : 1) != 0) return 2;
  } else if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) {
    return 3;
  }
  puts("done");
  return 0;
}
