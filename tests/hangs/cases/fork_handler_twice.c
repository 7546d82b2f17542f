// A library whose fork handler locks its mutex is initialised twice.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
static void initialise(void) { pthread_atfork(lock, unlock, unlock); }

int main(void) {
  initialise();
  initialise();
  const pid_t child = fork();  // hangs here
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  puts("done");
}
