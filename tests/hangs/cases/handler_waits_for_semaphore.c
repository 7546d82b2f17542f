// The handler of a signal waits for a semaphore that the thread it interrupts has taken.
#include <semaphore.h>
#include <signal.h>

static sem_t is_free;

static void handle(int number) {
  (void)number;
  while (sem_wait(&is_free) != 0) {
  }
  sem_post(&is_free);
}

int main(void) {
  sem_init(&is_free, 0, 1);
  signal(SIGUSR1, handle);
  sem_wait(&is_free);
  raise(SIGUSR1);
  return sem_post(&is_free);
}
