/* Waits by epoll for a signalfd: SIGUSR1 and SIGTERM are blocked, and only a process outside sends one. */
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

int main(void) {
  struct signalfd_siginfo received;
  struct epoll_event event = {.events = EPOLLIN};
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  sigaddset(&awaited, SIGTERM);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  const int signals = signalfd(-1, &awaited, SFD_CLOEXEC);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (signals < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &event) != 0) return 1;
  printf("ready %d\n", getpid());
  fflush(stdout);
  if (epoll_wait(epoll, &event, 1, -1) != 1) return 2;
  if (read(signals, &received, sizeof received) != sizeof received) return 3;
  puts("done");
  return 0;
}
