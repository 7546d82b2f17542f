/* blocked WAY: waits in one of the ways in the watch's wait table, for record_fixture. Prints "ready" first. */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void semaphore(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  sem_wait(&semaphore);
}

static void condition(int timed) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 3600;
  pthread_mutex_lock(&mutex);
  if (timed) pthread_cond_timedwait(&changed, &mutex, &until);
  pthread_cond_wait(&changed, &mutex);
}

static void poll_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  struct pollfd wait = {ends[0], POLLIN, 0};
  poll(&wait, 1, -1);
}

static void select_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static void epoll_of(int fd) {
  const int epoll = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
  epoll_wait(epoll, &wanted, 1, -1);
}

static int armed_timer(void) {
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct itimerspec hour = {.it_value = {3600, 0}};
  timerfd_settime(timer, 0, &hour, NULL);
  return timer;
}

/* Parent and child each wait for data from the other. */
static void unix_sockets(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  const int child = fork() == 0;
  close(ends[child]);
  char byte;
  recv(ends[1 - child], &byte, 1, 0);
}

static void accept_connection(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in any = {.sin_family = AF_INET};
  if (bind(listener, (struct sockaddr*)&any, sizeof any) != 0 || listen(listener, 1) != 0) abort();
  accept(listener, NULL, NULL);
}

static int unnamed_file(void) {
  FILE* file = tmpfile();
  if (file == NULL) abort();
  return fileno(file);
}

/* The child waits for the lock of its parent, which waits for the child's end. */
static void file_lock(int by_process) {
  const int file = unnamed_file();
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  struct flock whole = {.l_type = F_WRLCK};
  if (by_process ? fcntl(file, F_SETLK, &whole) : flock(file, LOCK_EX)) abort();
  if (fork() == 0) {
    const int again = open(path, O_RDWR);
    close(file);
    if (by_process) fcntl(again, F_SETLKW, &whole);
    flock(again, LOCK_EX);
  }
  wait(NULL);
}

static void read_fd(int fd) {
  char bytes[8];
  if (read(fd, bytes, sizeof bytes) < 0) abort();
}

static void write_pipe(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  for (;;) {
    if (write(ends[1], "x", 1) != 1) abort();
  }
}

static void wait_for_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  sigwaitinfo(&set, NULL);
}

int main(int argc, char** argv) {
  const char* way = argc == 2 ? argv[1] : "";
  puts("ready");
  fflush(stdout);
  if (strcmp(way, "semaphore") == 0) semaphore();
  if (strcmp(way, "condition") == 0) condition(0);
  if (strcmp(way, "timed_condition") == 0) condition(1);
  if (strcmp(way, "poll") == 0) poll_pipe();
  if (strcmp(way, "timed_poll") == 0) poll(NULL, 0, 3600000);
  if (strcmp(way, "select") == 0) select_pipe();
  if (strcmp(way, "epoll_eventfd") == 0) epoll_of(eventfd(0, 0));
  if (strcmp(way, "epoll_timer") == 0) epoll_of(armed_timer());
  if (strcmp(way, "eventfd") == 0) read_fd(eventfd(0, 0));
  if (strcmp(way, "unix_sockets") == 0) unix_sockets();
  if (strcmp(way, "accept") == 0) accept_connection();
  if (strcmp(way, "flock") == 0) file_lock(0);
  if (strcmp(way, "fcntl_lock") == 0) file_lock(1);
  if (strcmp(way, "pipe_write") == 0) write_pipe();
  if (strcmp(way, "pause") == 0) pause();
  if (strcmp(way, "signal") == 0) wait_for_signal();
  return 2;
}
