/* A child destroys a condition variable that a thread of its parent waits for: pthread_cond_destroy() waits until that
 * thread goes on, which never happens here. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, begun = PTHREAD_COND_INITIALIZER;
static int waits;

static void* wait_for_ever(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  waits = 1;
  pthread_cond_signal(&begun);
  for (;;) pthread_cond_wait(&condition, &mutex);
  return NULL;
}

int main(void) {
  pthread_t waiter;
  pthread_create(&waiter, NULL, wait_for_ever, NULL);
  pthread_mutex_lock(&mutex);
  while (!waits) pthread_cond_wait(&begun, &mutex);
  pthread_mutex_unlock(&mutex);
  const pid_t child = fork();
  if (child == 0) {
    pthread_cond_destroy(&condition); /* blocks here */
    _exit(0);
  }
  waitpid(child, NULL, 0); /* hangs here */
  puts("done");
  return 0;
}
