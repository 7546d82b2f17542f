/* Two processes, each of which waits for the other's semaphore before it posts its own. The semaphores are in a file.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  const int file = open("semaphores", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, 2 * sizeof(sem_t)) != 0) return 1;
  sem_t* const semaphores = mmap(NULL, 2 * sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (semaphores == MAP_FAILED) return 2;
  sem_init(&semaphores[0], 1, 0);
  sem_init(&semaphores[1], 1, 0);
  const pid_t child = fork();
  if (child < 0) return 3;
  const int own = child == 0;
  sem_wait(&semaphores[!own]); /* hangs here */
  sem_post(&semaphores[own]);
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  puts("done");
  return 0;
}
