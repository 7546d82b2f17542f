/* Another thread holds a mutex at the moment of fork; the child locks it, while another of its threads works. */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t locked, joined;

static void* hold(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  sem_post(&locked);
  sem_wait(&joined);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void* work(void* unused) {
  for (;;) poll(NULL, 0, 10);
  return unused;
}

int main(void) {
  pthread_t holder, worker;
  sem_init(&locked, 0, 0);
  sem_init(&joined, 0, 0);
  if (pthread_create(&holder, NULL, hold, NULL) != 0) return 1;
  sem_wait(&locked);
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    if (pthread_create(&worker, NULL, work, NULL) != 0) return 3;
    pthread_mutex_lock(&mutex); /* hangs here */
    _exit(0);
  }
  waitpid(child, NULL, 0);
  sem_post(&joined);
  pthread_join(holder, NULL);
  puts("done");
  return 0;
}
