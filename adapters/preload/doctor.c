/* Reports to `mprun doctor` the runtimes of a process, what they were doing when it forked, and the adapter for each.
 * Sent as notes of "doctor", with fields separated by tabs, which core/report/doctor_findings.cc reads:
 *
 *     start    PROGRAM
 *     process  PID  fork|exit  THREADS  RUNTIMES  PROGRAM  COMMAND
 *     runtime  PID  fork|exit  KIND  ADAPTER  on|off|absent  can-pause|cannot-pause  team|no-team  PATH
 *
 * Nothing of this is registered, looked up or sent unless MPRUN_DOCTOR is set. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

enum { MOST_RUNTIMES = 48, MOST_PROGRAM = 384, MOST_COMMAND = 256 };

static const char kName[] = "doctor";

struct finding {
  const struct runtime_kind* kind;
  struct loaded_object object;
  bool team;
};

struct findings {
  struct finding all[MOST_RUNTIMES];
  size_t count;
  const struct loaded_object* object; /* the one being examined */
};

/* What this process, or the one it was forked from, has reported: nothing is reported twice. */
static struct {
  uint64_t generation, runtimes, teams; /* `runtimes`: a hash of the runtimes and their addresses */
  unsigned most_threads;
} reported = {.generation = UINT64_MAX};

static bool listening;
/* How many more times this process may wait 2 ms for spinning threads. */
static int spins_left = 1000;

static void add_finding(const struct runtime_kind* kind, void* data) {
  struct findings* findings = data;
  if (findings->count == MOST_RUNTIMES) return;
  findings->all[findings->count++] = (struct finding){kind, *findings->object, false};
}

static bool collect(const struct loaded_object* object, void* data) {
  struct findings* findings = data;
  findings->object = object;
  each_runtime(object, add_finding, findings);
  return findings->count < MOST_RUNTIMES;
}

static bool is_running(pid_t thread, void* data) {
  char text[32];
  bool* running = data;
  *running = read_thread_file(thread, "syscall", text, sizeof text) && strncmp(text, "running", 7) == 0;
  return !*running;
}

/* After a region a team spins for some milliseconds before it waits where it can be recognised. */
static bool has_team_soon(const struct loaded_object* library) {
  for (;; --spins_left) {
    if (has_team(library)) return true;
    bool running = false;
    each_other_thread(is_running, &running);
    if (!running || spins_left <= 0) return has_team(library);
    const struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
  }
}

/* Reads a file or link of /proc/self into one field; characters that could be taken for separators become '?'. */
static void read_field(const char* path, char* text, size_t size) {
  ssize_t got = readlink(path, text, size - 1);
  if (got < 0) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
      got = read(fd, text, size - 1);
      close(fd);
    }
  }
  size_t length = got > 0 ? (size_t)got : 0;
  while (length > 0 && text[length - 1] == '\0') --length;
  for (size_t i = 0; i < length; ++i) {
    if (text[i] == '\0') {
      text[i] = ' ';
    } else if ((unsigned char)text[i] < ' ') {
      text[i] = '?';
    }
  }
  text[length] = '\0';
}

/* These adapters are Python modules (../python/site/sitecustomize.py). */
static bool is_pythons_adapter(const char* adapter) {
  return strcmp(adapter, "torch") == 0 || strcmp(adapter, "mindspore") == 0 || strcmp(adapter, "opencv") == 0;
}

static const char* adapter_state(const char* adapter) {
  if (!adapter_is_on(adapter)) return "off";
  return is_pythons_adapter(adapter) && python_leaves_adapters_out() ? "absent" : "on";
}

static void send_findings(const struct findings* findings, const char* when, unsigned threads) {
  char program[MOST_PROGRAM], command[MOST_COMMAND];
  const int pid = (int)getpid();
  read_field("/proc/self/exe", program, sizeof program);
  read_field("/proc/self/cmdline", command, sizeof command);
  note_and_wait(kName, "process\t%d\t%s\t%u\t%zu\t%s\t%s", pid, when, threads, findings->count, program, command);
  for (size_t i = 0; i < findings->count; ++i) {
    const struct finding* finding = &findings->all[i];
    const bool can_pause = find_symbol(&finding->object, "omp_pause_resource_all") != NULL;
    note_and_wait(kName, "runtime\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s", pid, when, finding->kind->name,
                  finding->kind->adapter, adapter_state(finding->kind->adapter),
                  can_pause ? "can-pause" : "cannot-pause", finding->team ? "team" : "no-team",
                  *finding->object.path != '\0' ? finding->object.path : program);
  }
}

static void examine(const char* when) {
  struct findings findings = {.count = 0};
  const unsigned threads = thread_count();
  uint64_t teams = 0, runtimes = 0;
  reported.generation = objects_generation();
  each_object(collect, &findings);
  for (size_t i = 0; i < findings.count; ++i) {
    struct finding* finding = &findings.all[i];
    runtimes = (runtimes ^ finding->object.base ^ (uint64_t)(uintptr_t)finding->kind) * 0x100000001b3U;
    finding->team = threads > 1 && is_libgomp(&finding->object) && has_team_soon(&finding->object);
    if (finding->team) teams |= (uint64_t)1 << i;
  }
  if (reported.runtimes != runtimes) reported.teams = reported.most_threads = 0;
  const bool news = reported.runtimes != runtimes || (teams & ~reported.teams) != 0 || threads > reported.most_threads;
  if (news && findings.count > 0) send_findings(&findings, when, threads);
  reported.runtimes = runtimes;
  reported.teams |= teams;
  if (threads > reported.most_threads) reported.most_threads = threads;
}

static int examine_at_fork(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  examine("fork");
  return 0;
}

/* Registered between quiet, which prepares before it, and the adapters, which prepare after it. */
void register_doctor(void) {
  if (getenv("MPRUN_DOCTOR") == NULL || *notes_address() == '\0') return;
  listening = true;
  char program[MOST_PROGRAM];
  read_field("/proc/self/exe", program, sizeof program);
  note_and_wait(kName, "start\t%s", program);
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = examine_at_fork, .deadline_ms = 60000};
  register_adapter(&hook);
}

/* A process that forked has reported already; it, or its child, reports again only if it has loaded more since. */
__attribute__((destructor)) static void examine_at_exit(void) {
  if (!listening) return;
  const int saved = errno;
  if (reported.generation != objects_generation()) examine("exit");
  errno = saved;
}
