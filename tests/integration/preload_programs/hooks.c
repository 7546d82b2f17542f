/* Registers hooks and forks, as its arguments say, one after the other:
 *   add NAME[,fails|,late|,refuses|,threads|,forks]...   a hook that traces its calls
 *   remove NAME                                          removes it
 *   fork | forkpty | grandchild | vfork | spawn          prints the traces of all processes, children first
 *   thread                                               starts a thread that sleeps
 *   no-clone                                             makes the kernel refuse new processes, with ENOMEM */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mprun/fork_hooks.h>
#include <pthread.h>
#include <pty.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "programs.h"

static char trace[1024];
static int output; /* our stdout, also where forkpty() gave the child another */

struct options {
  const char* name;
  bool fails, late, forks;
};

static struct options added[64];
static size_t added_count;

static void record(const char* half, const struct options* options) {
  const size_t used = strlen(trace);
  snprintf(trace + used, sizeof trace - used, " %s-%s", half, options->name);
}

static void show_trace(const char* who) { say(output, "%s:%s\n", who, trace); }

static int prepare(void* data, int64_t deadline) {
  const struct options* options = data;
  record("prepare", options);
  if (options->forks) {
    const pid_t child = fork();
    if (child == 0) _exit(7);
    require(wait_for(child) == 7, "fork in a hook");
  }
  while (options->late && seconds_now() < (double)deadline / 1e9 + 0.2) usleep(10000);
  errno = ENOTTY; /* a hook may leave anything there */
  return options->fails ? EBUSY : 0;
}

static void parent(void* data) {
  record("parent", data);
  errno = ENOTTY;
}
static void child(void* data) { record("child", data); }

static void add(char* text) {
  struct options* options = &added[added_count++];
  struct mprun_fork_hook hook = MPRUN_FORK_HOOK_INIT(strtok(text, ","));
  hook.prepare = prepare;
  hook.parent = parent;
  hook.child = child;
  hook.data = options;
  hook.deadline_ms = 60000;
  options->name = hook.name;
  for (const char* word; (word = strtok(NULL, ",")) != NULL;) {
    if (strcmp(word, "fails") == 0) options->fails = true;
    if (strcmp(word, "forks") == 0) options->forks = true;
    if (strcmp(word, "refuses") == 0) hook.on_failure = MPRUN_FORK_REFUSED;
    if (strcmp(word, "threads") == 0) hook.only_with_threads = 1;
    if (strcmp(word, "late") == 0) {
      options->late = true;
      hook.deadline_ms = 10;
    }
  }
  require(mprun_add_fork_hook(&hook) == 0, "mprun_add_fork_hook");
}

/* Removes the hook, or tries to remove one that is not there. */
static void remove_hook(const char* name) {
  void* data = NULL;
  for (size_t i = 0; i < added_count; ++i) {
    if (strcmp(added[i].name, name) == 0) data = &added[i];
  }
  const int status = mprun_remove_fork_hook(name, data);
  say(output, "remove: %s\n", status == 0 ? "done" : strerrorname_np(status));
}

static void finish(pid_t pid) {
  if (pid == 0) {
    show_trace("child");
    _exit(0);
  }
  if (pid < 0) {
    say(output, "%s ", strerrorname_np(errno));
  } else {
    require(wait_for(pid) == 0, "child");
  }
  show_trace("parent");
  trace[0] = '\0';
}

static void fork_twice(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    trace[0] = '\0';
    const pid_t grandchild = fork();
    if (grandchild > 0) require(wait_for(grandchild) == 0, "grandchild");
    show_trace(grandchild == 0 ? "grandchild" : "child");
    _exit(0);
  }
  finish(pid);
}

static void start_program(bool by_vfork) {
  char* const argv[] = {"true", NULL};
  pid_t pid = 0;
  if (by_vfork) {
    pid = vfork();
    if (pid == 0) {
      execve("/bin/true", argv, environ);
      _exit(127);
    }
  } else {
    require(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "posix_spawn");
  }
  finish(pid);
}

static void* sleep_for_ever(void* data) {
  for (;;) pause();
  return data;
}

static void refuse_clone(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "PR_SET_SECCOMP");
}

int main(int argc, char** argv) {
  alarm(PATIENCE_SECONDS);
  output = dup(STDOUT_FILENO);
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    int terminal = -1;
    pthread_t thread;
    if (strcmp(word, "add") == 0) add(argv[++i]);
    if (strcmp(word, "fork") == 0) finish(fork());
    if (strcmp(word, "forkpty") == 0) finish(forkpty(&terminal, NULL, NULL, NULL));
    if (strcmp(word, "grandchild") == 0) fork_twice();
    if (strcmp(word, "vfork") == 0) start_program(true);
    if (strcmp(word, "spawn") == 0) start_program(false);
    if (strcmp(word, "no-clone") == 0) refuse_clone();
    if (strcmp(word, "thread") == 0) require(pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0, "thread");
    if (strcmp(word, "remove") == 0) remove_hook(argv[++i]);
  }
  return 0;
}
