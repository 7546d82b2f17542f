// Two processes take two locks made of System V semaphores, in opposite order.
#include <stdio.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

static int set;

static void change(unsigned short number, short by) {
  struct sembuf operation = {number, by, SEM_UNDO};
  semop(set, &operation, 1);
}

static void meet(int to_other, int from_other) {
  char token = 'x';
  if (write(to_other, &token, 1) != 1 || read(from_other, &token, 1) != 1) _exit(3);
}

int main(void) {
  int there[2], back[2];
  set = semget(IPC_PRIVATE, 2, 0600);
  if (set < 0 || pipe(there) != 0 || pipe(back) != 0) return 1;
  printf("System V semaphores %d\n", set);
  fflush(stdout);
  for (int number = 0; number < 2; ++number) semctl(set, number, SETVAL, 1);
  if (fork() == 0) {
    change(1, -1);
    meet(back[1], there[0]);
    change(0, -1);
    _exit(0);
  }
  change(0, -1);
  meet(there[1], back[0]);
  change(1, -1);  // hangs here
  wait(NULL);
  puts("done");
}
