/* A thread waits in recv() when another one closes the socket, and then waits for the thread. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sockets[2];
static pid_t receiver;

static void* receive(void* argument) {
  (void)argument;
  char byte = 0;
  __atomic_store_n(&receiver, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
  (void)recv(sockets[0], &byte, 1, 0); /* blocks here */
  return NULL;
}

static int is_in_recv(pid_t thread) {
  char path[64], call[64] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
  FILE* file = fopen(path, "r");
  if (file != NULL) {
    if (fgets(call, sizeof call, file) == NULL) call[0] = 0;
    fclose(file);
  }
  int number = -1;
  return sscanf(call, "%d", &number) == 1 && number == SYS_recvfrom;
}

int main(void) {
  pthread_t thread;
  socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
  pthread_create(&thread, NULL, receive, NULL);
  while (__atomic_load_n(&receiver, __ATOMIC_SEQ_CST) == 0 || !is_in_recv(receiver)) {
  }
  close(sockets[0]);
  pthread_join(thread, NULL); /* hangs here */
  puts("done");
  return 0;
}
