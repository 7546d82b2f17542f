// Two processes wait for each other's first message; each has only its own queue to send to.
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static mqd_t make(const char* which) {
  char name[64];
  snprintf(name, sizeof name, "/mprun-test-%s-%d", which, getpid());
  const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
  mq_unlink(name);
  return queue;
}

int main(void) {
  static char message[8192];
  const mqd_t there = make("there"), back = make("back");
  if (there < 0 || back < 0) return 1;
  const pid_t child = fork();
  const mqd_t mine = child == 0 ? there : back, theirs = child == 0 ? back : there;
  mq_receive(mine, message, sizeof message, NULL);  // hangs here
  mq_send(theirs, "ready", 5, 0);
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  puts("done");
}
