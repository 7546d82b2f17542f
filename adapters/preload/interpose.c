/* The functions that replace libc's: fork(), with the hooks around it, and the exec functions, which only check that
 * the new program's environment still preloads this library, and pass an alarm on to it. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload.h"
#include "wire/alarms.h"

/* libc's own, found before main: dlsym() may wait for locks that no thread releases between fork and exec. */
#define FOR_EACH_REAL(X) X(fork) X(execve) X(execvpe) X(posix_spawn) X(posix_spawnp)
// NOLINTBEGIN(bugprone-macro-parentheses): member names
#define DECLARE(name) __typeof__(&name) name;
#define FIND(name) real.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
// NOLINTEND(bugprone-macro-parentheses)
static struct { FOR_EACH_REAL(DECLARE) } real;

/* Another library's constructor may call a function here before our own constructor ran. */
static void find_real(void) {
  if (real.posix_spawnp == NULL) {
    FOR_EACH_REAL(FIND)
  }
}

/* The forks of this thread. Hooks run around the outermost only, not around a fork inside a hook. */
static __thread struct {
  int depth;
  struct fork_in_flight unseen; /* a fork that bypasses our fork(): forkpty, daemon, dlsym */
} forking;

MPRUN_EXPORT pid_t fork(void) {
  find_real();
  if (forking.depth > 0) return real.fork();
  const int saved = errno;
  struct fork_in_flight fork;
  fork.caller = __builtin_return_address(0);
  ++forking.depth;
  pid_t pid = -1;
  int failure = EAGAIN;
  if (prepare_hooks(&fork, true)) {
    pid = real.fork();
    failure = errno;
    if (pid == 0) {
      child_hooks(&fork);
    } else {
      parent_hooks(&fork);
    }
  }
  --forking.depth;
  errno = pid < 0 ? failure : saved;
  return pid;
}

/* The same for forks from inside libc, which our fork() does not see. They cannot be refused. */
static void before_unseen_fork(void) {
  if (forking.depth++ == 0) prepare_hooks(&forking.unseen, false);
}
static void after_unseen_fork_in_parent(void) {
  if (--forking.depth == 0) parent_hooks(&forking.unseen);
}
static void after_unseen_fork_in_child(void) {
  forget_alarm();
  if (--forking.depth == 0) child_hooks(&forking.unseen);
}

/* Written by hand: a child that runs a program at once would bind libc's functions again each time. */
static bool begins_with(const char* text, const char* begin) {
  while (*begin != '\0' && *text == *begin) ++text, ++begin;
  return *begin == '\0';
}

static bool names_us(const char* variable) {
  if (!begins_with(variable, "LD_PRELOAD=")) return false;
  while (*variable != '\0' && !begins_with(variable, MPRUN_PRELOAD_NAME)) ++variable;
  return *variable != '\0';
}

/* Reports, once per process, a program that starts without this library and needs it. Also between vfork and exec. */
static void look_at_environment(const char* program, char* const* environment) {
  static bool reported;
  find_real();
  if (reported) return;
  for (; environment != NULL && *environment != NULL; ++environment) {
    if (names_us(*environment)) return;
  }
  if (program == NULL || !forks_beside_threads(program)) return;
  reported = true;
  note("environment", "%s is started without LD_PRELOAD in its environment: mprun's adapters are not in it", program);
}

MPRUN_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) {
  look_at_environment(path, envp);
  return exec_with_alarm(real.execve, path, argv, envp);
}

MPRUN_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) {
  look_at_environment(file, envp);
  return exec_with_alarm(real.execvpe, file, argv, envp);
}

MPRUN_EXPORT int execv(const char* path, char* const argv[]) { return execve(path, argv, environ); }

MPRUN_EXPORT int execvp(const char* file, char* const argv[]) { return execvpe(file, argv, environ); }

/* libc's execl and its variants do not call our execve. Collects the arguments of a call in an array `argv`;
 * `arguments` is then after their NULL. */
#define COLLECT_ARGUMENTS(first)                                                                 \
  size_t count = 0;                                                                              \
  va_list arguments;                                                                             \
  va_start(arguments, first);                                                                    \
  for (const char* each = (first); each != NULL; each = va_arg(arguments, const char*)) ++count; \
  va_end(arguments);                                                                             \
  char* argv[count + 1];                                                                         \
  va_start(arguments, first);                                                                    \
  argv[0] = (char*)(first);                                                                      \
  for (size_t i = 1; i <= count; ++i) argv[i] = va_arg(arguments, char*)

// NOLINTBEGIN(clang-analyzer-valist.Uninitialized): version 14 loses sight of va_start here
MPRUN_EXPORT int execl(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  va_end(arguments);
  return execv(path, argv);
}

MPRUN_EXPORT int execlp(const char* file, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  va_end(arguments);
  return execvp(file, argv);
}

MPRUN_EXPORT int execle(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  char* const* envp = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, argv, envp);
}
// NOLINTEND(clang-analyzer-valist.Uninitialized)

MPRUN_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  look_at_environment(path, envp);
  return real.posix_spawn(pid, path, actions, attributes, argv, envp);
}

MPRUN_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  look_at_environment(file, envp);
  return real.posix_spawnp(pid, file, actions, attributes, argv, envp);
}

__attribute__((constructor)) static void start(void) {
  find_real();
  find_witnessed();
  inherit_alarm();
  if (getauxval(AT_SECURE) != 0) { /* no hooks in a program with elevated rights */
    forking.depth = 1;
    return;
  }
  read_settings();
  find_listener();
  register_history();
  register_python();
  register_libgomp();
  register_tbb();
  register_doctor();
  register_quiet();
  pthread_atfork(before_unseen_fork, after_unseen_fork_in_parent, after_unseen_fork_in_child);
}
