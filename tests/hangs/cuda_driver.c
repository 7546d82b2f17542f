// A stand-in for NVIDIA's driver for CUDA, as libcuda.so.580.1, for machines without a GPU: the same threads, with the
// same names and waits. It has been compared with driver 580.159.04 on an H200.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef void (*Function)(void);

static int gpu = -1;  // readable when it has finished
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int finished;
static Function callback;

static void* handle_events(void* unused) {
  struct pollfd devices[1] = {{gpu, POLLIN, 0}};
  for (;;) {
    uint64_t times;
    if (poll(devices, 1, 100) <= 0 || read(gpu, &times, sizeof times) <= 0) continue;
    pthread_mutex_lock(&mutex);
    finished = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static void* notify(void* unused) {
  struct pollfd devices[1] = {{eventfd(0, 0), POLLIN, 0}};
  while (poll(devices, 1, -1) >= 0) continue;
  return unused;
}

// Waits for the GPU without spinning, as a stream with blocking synchronization does.
void wait_for_gpu(void) {
  pthread_mutex_lock(&mutex);
  while (!finished) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void* call_back(void* unused) {
  wait_for_gpu();
  callback();
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&changed, &mutex);
  return unused;
}

static void start(void* (*run)(void*), const char* name) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) == 0 && name != NULL) pthread_setname_np(thread, name);
}

// Uses the GPU, which will be busy for some time; 0: it is idle.
void use_gpu(double seconds) {
  struct itimerspec limit = {{0, 0}, {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}};
  gpu = timerfd_create(CLOCK_MONOTONIC, 0);
  timerfd_settime(gpu, 0, &limit, NULL);
  start(notify, "cuda00001400006");
  start(handle_events, "cuda-EvtHandlr");
}

// As cudaLaunchHostFunc().
void call_when_finished(Function function) {
  callback = function;
  start(call_back, NULL);
}
