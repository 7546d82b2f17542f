/* Another thread is inside an OpenMP critical section at the moment of fork; the child wants to enter it. libgomp has
 * no fork handler, and its lock is no thread's own (GCC 58378). */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t entered, joined;

static void enter(int wait) {
#pragma omp critical
  if (wait) {
    sem_post(&entered);
    sem_wait(&joined);
  }
}

static void* enter_and_wait(void* unused) {
  (void)unused;
  enter(1);
  return NULL;
}

int main(void) {
  pthread_t thread;
  sem_init(&entered, 0, 0);
  sem_init(&joined, 0, 0);
  if (pthread_create(&thread, NULL, enter_and_wait, NULL) != 0) return 1;
  sem_wait(&entered);
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    enter(0); /* blocks here */
    _exit(0);
  }
  waitpid(child, NULL, 0); /* hangs here */
  sem_post(&joined);
  pthread_join(thread, NULL);
  puts("done");
  return 0;
}
