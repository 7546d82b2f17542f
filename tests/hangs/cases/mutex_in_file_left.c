/* A mutex in a file that programs share, as Boost.Interprocess makes it: one of them ended while it had the mutex. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t* map(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(pthread_mutex_t)) != 0) return MAP_FAILED;
  return mmap(NULL, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

int main(void) {
  const pid_t earlier = fork();
  if (earlier < 0) return 1;
  pthread_mutex_t* const mutex = map("mutex");
  if (mutex == MAP_FAILED) return 2;
  if (earlier == 0) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutex_lock(mutex);
    _exit(0);
  }
  if (waitpid(earlier, NULL, 0) != earlier) return 3;
  pthread_mutex_lock(mutex); /* hangs here */
  puts("done");
  return 0;
}
