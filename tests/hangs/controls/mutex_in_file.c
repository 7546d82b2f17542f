/* Waits for a mutex in a file, which a process outside has locked. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int count, char** arguments) {
  const int file = count > 1 ? open(arguments[1], O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return 1;
  pthread_mutex_t* const mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mutex == MAP_FAILED) return 2;
  puts("ready");
  fflush(stdout);
  pthread_mutex_lock(mutex);
  puts("done");
  return pthread_mutex_unlock(mutex);
}
