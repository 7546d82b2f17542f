/* A runtime with a thread of its own, and the fork hook that lets it survive fork().
 *
 * The pool has one worker thread, which squares one number at a time. A forked child has a copy of the pool's memory
 * but not of its thread: without the hook its first request would wait for ever. */
#include <errno.h>
#include <mprun/fork_hooks.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct pool {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  enum { IDLE, ASKED, ANSWERED, STOPPING } state;
  long number;
};

static void* work(void* data) {
  struct pool* pool = data;
  pthread_mutex_lock(&pool->mutex);
  while (pool->state != STOPPING) {
    if (pool->state == ASKED) {
      pool->number *= pool->number;
      pool->state = ANSWERED;
      pthread_cond_broadcast(&pool->changed);
    }
    pthread_cond_wait(&pool->changed, &pool->mutex);
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

static void start_pool(void* data) {
  struct pool* pool = data;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->changed, NULL);
  pool->state = IDLE;
  if (pthread_create(&pool->thread, NULL, work, pool) != 0) abort();
}

/* Ends the thread. This pool takes its requests from one thread, the one that forks, so nothing is under way. */
static int stop_pool(void* data, int64_t deadline) {
  struct pool* pool = data;
  (void)deadline; /* the thread has nothing to do that could take long */
  pthread_mutex_lock(&pool->mutex);
  pool->state = STOPPING;
  pthread_cond_broadcast(&pool->changed);
  pthread_mutex_unlock(&pool->mutex);
  return pthread_join(pool->thread, NULL);
}

static long square(struct pool* pool, long number) {
  pthread_mutex_lock(&pool->mutex);
  pool->number = number;
  pool->state = ASKED;
  pthread_cond_broadcast(&pool->changed);
  while (pool->state != ANSWERED) pthread_cond_wait(&pool->changed, &pool->mutex);
  const long answer = pool->number;
  pthread_mutex_unlock(&pool->mutex);
  return answer;
}

static void say(const char* label, struct pool* pool, long number) {
  printf("%s: %ld\n", label, square(pool, number));
  fflush(stdout);
}

int main(void) {
  struct pool pool;
  start_pool(&pool);
  say("before fork", &pool, 11);

  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT("example_pool");
  hook.prepare = stop_pool;
  hook.parent = hook.child = start_pool;
  hook.data = &pool;
  hook.on_failure = MPRUN_FORK_REFUSED;
  const int status = mprun_add_fork_hook(&hook);
  if (status == ENOSYS) {
    puts("not under mprun: a child could not use the pool, so there is none");
    return 0;
  }
  if (status != 0) return 1;

  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    alarm(5); /* ends a child whose pool does not answer */
    say("child", &pool, 12);
    _exit(0);
  }
  say("parent", &pool, 13);
  int end = 0;
  waitpid(child, &end, 0);
  if (WIFSIGNALED(end)) puts("the child's pool did not answer");
  return end == 0 ? 0 : 1;
}
