// A server takes one message for each event of epoll, edge-triggered, and two had come before it looked: the second
// makes no event (epoll(7): read until EAGAIN). The client waits for both answers.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int ask_twice(int server, int sent) {
  char answer = 0;
  if (send(server, "a", 1, 0) != 1 || send(server, "b", 1, 0) != 1 || write(sent, "", 1) != 1) return 1;
  for (int i = 0; i < 2; ++i) {
    if (recv(server, &answer, 1, 0) != 1) return 1;
  }
  return 0;
}

int main(void) {
  int ends[2], sent[2];
  char byte = 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || pipe(sent) != 0) return 1;
  if (fork() == 0) _exit(ask_twice(ends[1], sent[1]));
  if (read(sent[0], &byte, 1) != 1) return 1;
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  if (epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) != 0) return 1;
  for (int answers = 0; answers < 2; ++answers) {
    if (epoll_wait(set, &event, 1, -1) != 1) return 1;  // hangs here
    if (recv(ends[0], &byte, 1, 0) != 1 || send(ends[0], &byte, 1, 0) != 1) return 1;
  }
  wait(NULL);
  return write(STDOUT_FILENO, "done\n", 5) == 5 ? 0 : 1;
}
