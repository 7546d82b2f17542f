/* A library with a thread of its own, which fork() does not copy: the child gives it work and waits forever. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int wanted_count, done_count;

static void* serve(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (wanted_count == 0) pthread_cond_wait(&wanted, &mutex);
    --wanted_count;
    ++done_count;
    pthread_cond_signal(&done);
  }
  return NULL;
}

static void call(void) {
  pthread_mutex_lock(&mutex);
  const int before = done_count;
  ++wanted_count;
  pthread_cond_signal(&wanted);
  while (done_count == before) pthread_cond_wait(&done, &mutex); /* blocks here */
  pthread_mutex_unlock(&mutex);
}

int main(void) {
  pthread_t server;
  pthread_create(&server, NULL, serve, NULL);
  call();
  const pid_t child = fork();
  if (child == 0) {
    call();
    _exit(0);
  }
  waitpid(child, NULL, 0); /* hangs here */
  puts("done");
  return 0;
}
