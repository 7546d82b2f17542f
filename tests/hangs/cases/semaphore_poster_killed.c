/* A semaphore in shared memory whose poster is killed before it posts (HAMi-core#248). */
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  sem_t* const ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ready == MAP_FAILED || sem_init(ready, 1, 0) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    kill(getpid(), SIGKILL);
    sem_post(ready);
    _exit(0);
  }
  sem_wait(ready); /* hangs here */
  waitpid(child, NULL, 0);
  puts("done");
  return 0;
}
