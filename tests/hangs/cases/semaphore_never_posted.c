// A child waits for a semaphore in shared memory, which its parent would post after the child's end.
#include <semaphore.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  sem_t* const may_end = mmap(NULL, sizeof *may_end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (may_end == MAP_FAILED || sem_init(may_end, 1, 0) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    sem_wait(may_end);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return sem_post(may_end);
}
