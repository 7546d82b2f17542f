/* A server: a child waits for what a client outside asks, its parent for the end of the child. Run with "ask" as the
   last argument, it is that client. The key, or the name, is made of the path in the first argument. */
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
  long type;
  char text[8];
};

static int use_queue(int asks, key_t key) {
  struct message message = {1, "request"};
  const int queue = msgget(key, IPC_CREAT | 0600);
  if (asks) return msgsnd(queue, &message, sizeof message.text, 0);
  const ssize_t received = msgrcv(queue, &message, sizeof message.text, 0, 0);
  msgctl(queue, IPC_RMID, NULL);
  return received > 0 ? 0 : 1;
}

static int use_semaphore(int asks, key_t key) {
  struct sembuf operation = {0, asks ? 1 : -1, 0};
  const int set = semget(key, 1, IPC_CREAT | 0600);
  const int status = semop(set, &operation, 1);
  if (!asks) semctl(set, 0, IPC_RMID);
  return status;
}

static int use_posix_queue(int asks, key_t key) {
  char name[64], text[8192];
  snprintf(name, sizeof name, "/mprun-test-server-%x", (unsigned)key);
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, NULL);
  if (asks) return mq_send(queue, "request", 7, 0);
  const ssize_t received = mq_receive(queue, text, sizeof text, NULL);
  mq_unlink(name);
  return received > 0 ? 0 : 1;
}

static int use_named_semaphore(int asks, key_t key) {
  char name[64];
  snprintf(name, sizeof name, "/mprun-test-server-%x", (unsigned)key);
  sem_t* const semaphore = sem_open(name, O_CREAT, 0600, 0);
  if (semaphore == SEM_FAILED) return 1;
  if (asks) return sem_post(semaphore);
  const int status = sem_wait(semaphore);
  sem_unlink(name);
  return status;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int asks = strcmp(arguments[count - 1], "ask") == 0;
  const char* way = arguments[2];
  const key_t key = ftok(arguments[1], *way);
  int (*use)(int, key_t) = strcmp(way, "queue") == 0             ? use_queue
                           : strcmp(way, "semaphore") == 0       ? use_semaphore
                           : strcmp(way, "named-semaphore") == 0 ? use_named_semaphore
                                                                 : use_posix_queue;
  if (asks) return use(1, key);
  puts("ready");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(use(0, key));
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0) return 3;
  puts("done");
  return 0;
}
