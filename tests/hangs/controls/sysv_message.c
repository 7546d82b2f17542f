/* Waits for a message of a System V queue, which a child sends when it has slept enough. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
  long type;
  char text[1];
};

int main(int count, char** arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 30;
  struct message message = {1, {'x'}};
  const int queue = msgget(IPC_PRIVATE, 0600);
  const pid_t child = queue < 0 ? -1 : fork();
  if (child < 0) return 1;
  if (child == 0) {
    usleep((useconds_t)(1e6 * seconds));
    _exit(msgsnd(queue, &message, sizeof message.text, 0) == 0 ? 0 : 1);
  }
  const ssize_t received = msgrcv(queue, &message, sizeof message.text, 0, 0);
  waitpid(child, NULL, 0);
  msgctl(queue, IPC_RMID, NULL);
  if (received != sizeof message.text) return 2;
  puts("done");
  return 0;
}
