/* A program locks a mutex twice. It has asked for an alarm, whose signal it ignores. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void) {
  signal(SIGALRM, SIG_IGN);
  alarm(1);
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex); /* hangs here */
  return 0;
}
