/* Waits for its child, which takes a mutex twice, for a limited time by the call in its argument; then kills it. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void take(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(second);
}

static void* opposite(void* unused) {
  take(&other, &one);
  return unused;
}

static void stick(void) {
  pthread_t thread;
  pthread_barrier_init(&both, NULL, 2);
  if (pthread_create(&thread, NULL, opposite, NULL) != 0) _exit(1);
  take(&one, &other);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 30;
  const char* call = argc > 2 ? argv[2] : "poll";
  struct timespec limit = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) stick();
  if (strcmp(call, "sigtimedwait") == 0) {
    sigtimedwait(&ends, NULL, &limit);
  } else if (strcmp(call, "poll") == 0) {
    struct pollfd of_child = {(int)syscall(SYS_pidfd_open, child, 0), POLLIN, 0};
    if (of_child.fd < 0) return 2;
    poll(&of_child, 1, (int)(seconds * 1e3));
  } else {
    nanosleep(&limit, NULL);
  }
  if (waitpid(child, NULL, WNOHANG) != 0) return 3;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  puts("done");
  return 0;
}
