/* A loop as libuv's: it waits for a pipe, of which it holds the other end itself, and for an io_uring without work. */
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static int watch(int loop, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

int main(void) {
  struct io_uring_params params = {0};
  int ends[2];
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  const int ring = (int)syscall(SYS_io_uring_setup, 8, &params); /* where it is forbidden the rest hangs as well */
  if (loop < 0 || pipe(ends) != 0 || watch(loop, ends[0]) != 0) return 1;
  if (ring >= 0 && watch(loop, ring) != 0) return 2;
  struct epoll_event event;
  epoll_wait(loop, &event, 1, -1); /* hangs here */
  puts("done");
  return 0;
}
