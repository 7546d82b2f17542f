/* A process for mprun to watch: watched_load STATE THREADS runs until standard input ends; it prints "ready" when all
 * of its threads have started.
 *   asleep    all sleep for an hour
 *   blocked   all wait for a condition that no thread signals while standard input is open
 *   busy      all wake 20 times a second, for a moment
 *   one       one of them wakes twice a second, the others wait for a condition
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL_STACK = 64 * 1024, WORK = 2000 };

static const char* state;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void* wait_for_ever(void) {
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&never, &mutex);
  return NULL;
}

static void* sleep_again_and_again(time_t seconds, long nanoseconds) {
  const struct timespec pause = {seconds, nanoseconds};
  volatile double sum = 0;
  for (;;) {
    nanosleep(&pause, NULL);
    for (int i = 0; i < WORK; ++i) sum = sum + i * 0.5;
  }
  return NULL;
}

static void* run(void* number) {
  if (strcmp(state, "asleep") == 0) return sleep_again_and_again(3600, 0);
  if (strcmp(state, "busy") == 0) return sleep_again_and_again(0, 50000000);
  if (strcmp(state, "one") == 0 && *(int*)number == 0) return sleep_again_and_again(0, 500000000);
  return wait_for_ever();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  state = argv[1];
  const int count = atoi(argv[2]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, SMALL_STACK);
  int* numbers = calloc((size_t)count, sizeof *numbers);
  if (numbers == NULL) return 1;
  for (int i = 1; i < count; ++i) { /* main is one of them */
    numbers[i] = i - 1;
    pthread_t thread;
    if (pthread_create(&thread, &attributes, run, &numbers[i]) != 0) return 1;
  }
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
