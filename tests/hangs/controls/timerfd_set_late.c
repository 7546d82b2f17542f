/* An event loop waits for a timerfd, which a child that has it too sets late. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const useconds_t quiet = (useconds_t)(1e6 * (count > 1 ? atof(arguments[1]) : 30));
  const struct itimerspec soon = {{0, 0}, {0, 1000}};
  struct epoll_event event = {.events = EPOLLIN};
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (loop < 0 || timer < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, timer, &event) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    usleep(quiet);
    _exit(timerfd_settime(timer, 0, &soon, NULL) == 0 ? 0 : 2);
  }
  if (epoll_wait(loop, &event, 1, -1) != 1 || waitpid(child, NULL, 0) != child) return 3;
  puts("done");
  return 0;
}
