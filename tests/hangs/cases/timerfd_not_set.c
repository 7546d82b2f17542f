/* An event loop as Boost.Asio's: its epoll set has a timerfd, which is set for the next timer. There is none. */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

int main(void) {
  struct epoll_event event = {.events = EPOLLIN};
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (loop < 0 || timer < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, timer, &event) != 0) return 1;
  epoll_wait(loop, &event, 1, -1); /* hangs here */
  puts("done");
  return 0;
}
