/* A mutex whose owner has another number than the mutex says, or numbers that mean others here: threads wait for it
   while it is held for a while.
   fork:      locked before fork() by the thread that forks, it is unlocked by the first thread of the child
   raw:       the same by the system call alone, which bypasses glibc: the child locks by its parent's number
   namespace: in a PID namespace of its own, where that may be made */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double seconds = 30;

/* At two places by turns: it gets somewhere. */
static void work(void) {
  for (int i = 0; i < seconds * 8; ++i) {
    poll(NULL, 0, 55);
    usleep(70000);
  }
}

static void* lock(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* hold(void* barrier) {
  pthread_mutex_lock(&mutex);
  pthread_barrier_wait(barrier);
  work();
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static int unlock_late(void) {
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, lock, NULL) != 0) return 1;
  work();
  pthread_mutex_unlock(&mutex);
  return pthread_join(waiter, NULL);
}

static int hold_in_thread(void) {
  pthread_t holder, waiter;
  pthread_barrier_t locked;
  pthread_barrier_init(&locked, NULL, 2);
  if (pthread_create(&holder, NULL, hold, &locked) != 0) return 1;
  pthread_barrier_wait(&locked);
  if (pthread_create(&waiter, NULL, lock, NULL) != 0) return 1;
  return pthread_join(holder, NULL) + pthread_join(waiter, NULL);
}

int main(int count, char** arguments) {
  const char* const how = count > 2 ? arguments[2] : "fork";
  if (count > 1) seconds = atof(arguments[1]);
  const int is_raw = strcmp(how, "raw") == 0, is_namespace = strcmp(how, "namespace") == 0;
  if (is_namespace && unshare(CLONE_NEWPID) != 0) (void)unshare(CLONE_NEWUSER | CLONE_NEWPID);
  if (!is_raw && !is_namespace) pthread_mutex_lock(&mutex);
  const pid_t child = is_raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0) : fork();
  if (child < 0) return 1;
  if (child == 0) {
    if (is_raw) pthread_mutex_lock(&mutex);
    _exit(is_namespace ? hold_in_thread() : unlock_late());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 2;
  puts("done");
  return 0;
}
