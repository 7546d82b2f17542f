/* What a fork and what surrounds it cost: fork_cost QUESTION COUNT prints the seconds of one.
 *   forks           a fork and the wait for the child, in a process with one thread
 *   threaded-forks  the same with three more threads, all idle
 *   warm-forks      the same in a process that has used OpenMP (the child does not)
 *   parent-regions  a parallel region in a parent that forked once, after its first region
 *   child-regions   a parallel region in a child of a parent that never used OpenMP, after its first region
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEAM = 2, WORK = 20000 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double region(void) {
  double sum = 0;
#pragma omp parallel for num_threads(TEAM) reduction(+ : sum)
  for (int i = 0; i < WORK; ++i) sum += i * 0.5;
  return sum;
}

static void* idle(void* unused) {
  (void)unused;
  pause();
  return NULL;
}

static void fork_and_wait(void) {
  const pid_t pid = fork();
  if (pid < 0) {
    perror("fork_cost: fork");
    exit(1);
  }
  if (pid == 0) _exit(0);
  waitpid(pid, NULL, 0);
}

static double time_forks(long count) {
  fork_and_wait();
  const double begin = now();
  for (long i = 0; i < count; ++i) fork_and_wait();
  return (now() - begin) / (double)count;
}

static double time_regions(long count) {
  region();
  const double begin = now();
  for (long i = 0; i < count; ++i) region();
  return (now() - begin) / (double)count;
}

static double time_child_regions(long count) {
  int ends[2];
  double seconds = 0;
  if (pipe(ends) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    seconds = time_regions(count);
    _exit(write(ends[1], &seconds, sizeof seconds) != sizeof seconds);
  }
  waitpid(pid, NULL, 0);
  return read(ends[0], &seconds, sizeof seconds) == sizeof seconds ? seconds : -1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: fork_cost QUESTION COUNT\n");
    return 2;
  }
  const char* question = argv[1];
  const long count = strtol(argv[2], NULL, 10);
  double seconds = -1;
  if (strcmp(question, "threaded-forks") == 0) {
    for (int i = 0; i < 3; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, idle, NULL) != 0) return 1;
    }
    seconds = time_forks(count);
  } else if (strcmp(question, "warm-forks") == 0) {
    region();
    seconds = time_forks(count);
  } else if (strcmp(question, "forks") == 0) {
    seconds = time_forks(count);
  } else if (strcmp(question, "parent-regions") == 0) {
    region();
    fork_and_wait();
    seconds = time_regions(count);
  } else if (strcmp(question, "child-regions") == 0) {
    seconds = time_child_regions(count);
  }
  if (seconds < 0) return 1;
  printf("%.9f\n", seconds);
  return 0;
}
