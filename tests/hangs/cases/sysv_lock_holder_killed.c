// A child is killed while it has a semaphore of System V that it did not take with SEM_UNDO.
#include <signal.h>
#include <stdio.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  struct sembuf take = {0, -1, 0};
  const int set = semget(IPC_PRIVATE, 1, 0600);
  if (set < 0 || semctl(set, 0, SETVAL, 1) != 0) return 1;
  printf("System V semaphores %d\n", set);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    semop(set, &take, 1);
    raise(SIGKILL);
  }
  waitpid(child, NULL, 0);
  semop(set, &take, 1);  // hangs here
  puts("done");
}
