// The parent waits for a reply of a child, which waits for another type of request than it is sent.
#include <stdio.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
  long type;
  char text[8];
};

int main(void) {
  struct message message = {1, "request"};
  const int requests = msgget(IPC_PRIVATE, 0600), replies = msgget(IPC_PRIVATE, 0600);
  if (requests < 0 || replies < 0) return 1;
  printf("System V queues %d %d\n", requests, replies);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    msgrcv(requests, &message, sizeof message.text, 2, 0);
    msgsnd(replies, &message, sizeof message.text, 0);
    _exit(0);
  }
  msgsnd(requests, &message, sizeof message.text, 0);
  waitpid(child, NULL, 0);  // hangs here
  msgrcv(replies, &message, sizeof message.text, 0, 0);
  puts("done");
}
