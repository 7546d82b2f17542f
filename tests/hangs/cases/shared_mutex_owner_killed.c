/* A mutex in shared memory, not a robust one, whose owner is killed (boostorg/interprocess#65). */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  pthread_mutex_t* const mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mutex == MAP_FAILED) return 1;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(mutex, &attributes);
  const pid_t owner = fork();
  if (owner < 0) return 2;
  if (owner == 0) {
    pthread_mutex_lock(mutex);
    kill(getpid(), SIGKILL);
  }
  if (waitpid(owner, NULL, 0) != owner) return 3;
  pthread_mutex_lock(mutex); /* hangs here */
  puts("done");
  return 0;
}
