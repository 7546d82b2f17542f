/* A child waits for a semaphore, a message, or room for one; its parent is slow to act. */
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
  long type;
  char text[1024];
};

static int use_semaphore(int gives, int set) {
  struct sembuf operation = {0, gives ? 1 : -1, SEM_UNDO};
  return semop(set, &operation, 1);
}

/* Until the queue is full, and once more. */
static int fill(int queue) {
  struct message message = {1, ""};
  while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) {
  }
  return msgsnd(queue, &message, sizeof message.text, 0);
}

static int semaphore(double seconds) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  semctl(set, 0, SETVAL, 0);
  const pid_t child = fork();
  if (child == 0) _exit(use_semaphore(0, set) == 0 ? 0 : 1);
  usleep((useconds_t)(1e6 * seconds));
  use_semaphore(1, set);
  int status = 1;
  waitpid(child, &status, 0);
  semctl(set, 0, IPC_RMID);
  return status;
}

static int full_queue(double seconds) {
  struct message message;
  const int queue = msgget(IPC_PRIVATE, 0600);
  const pid_t child = fork();
  if (child == 0) _exit(fill(queue) == 0 ? 0 : 1);
  usleep((useconds_t)(1e6 * seconds));
  msgrcv(queue, &message, sizeof message.text, 0, 0);
  int status = 1;
  waitpid(child, &status, 0);
  msgctl(queue, IPC_RMID, NULL);
  return status;
}

static int posix_queue(double seconds) {
  char name[64], text[8192];
  snprintf(name, sizeof name, "/mprun-test-slow-%d", getpid());
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
  mq_unlink(name);
  const pid_t child = fork();
  if (child == 0) _exit(mq_receive(queue, text, sizeof text, NULL) == 2 ? 0 : 1);
  usleep((useconds_t)(1e6 * seconds));
  mq_send(queue, "go", 2, 0);
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const double seconds = atof(arguments[1]);
  const char* way = arguments[2];
  const int status = strcmp(way, "semaphore") == 0    ? semaphore(seconds)
                     : strcmp(way, "full-queue") == 0 ? full_queue(seconds)
                                                      : posix_queue(seconds);
  if (status != 0) return 3;
  puts("done");
  return 0;
}
