/* Waits for a semaphore in the file that it is given; run with a second argument, it posts it instead. */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const int file = count > 1 ? open(arguments[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0 || ftruncate(file, sizeof(sem_t)) != 0) return 1;
  sem_t* const semaphore = mmap(NULL, sizeof *semaphore, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (semaphore == MAP_FAILED) return 2;
  if (count > 2) return sem_post(semaphore);
  sem_init(semaphore, 1, 0);
  puts("ready");
  fflush(stdout);
  while (sem_wait(semaphore) != 0) {
  }
  puts("done");
  return 0;
}
