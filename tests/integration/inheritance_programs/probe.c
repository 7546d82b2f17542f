/* Writes down what a process has inherited, a line "KEY<tab>VALUE" each, into the file that PROBE_FILE names.
 *
 * As a program:  probe [WORDS...]
 * As a library:  describe_process() from inside of another process, as of a Python worker's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

extern char** environ;

static void write_descriptors(FILE* out) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) return;
  for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(folder) || fd == fileno(out)) continue;
    char path[64], target[4096];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(path, target, sizeof target - 1);
    target[size < 0 ? 0 : size] = '\0';
    fprintf(out, "fd %d\t%s descriptor=%#x file=%#x\n", fd, target, fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
  }
  closedir(folder);
}

static void write_limits(FILE* out) {
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) continue;
    fprintf(out, "limit %d\t%llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
            (unsigned long long)limit.rlim_max);
  }
}

/* The inherited lines of /proc/self/status: signals, credentials, permissions. */
static void write_status(FILE* out) {
  static const char* const kWanted[] = {"SigBlk",      "SigIgn",       "SigCgt",       "SigPnd",     "ShdPnd",
                                        "Uid",         "Gid",          "Groups",       "CapInh",     "CapPrm",
                                        "CapEff",      "CapBnd",       "CapAmb",       "NoNewPrivs", "Seccomp",
                                        "THP_enabled", "Cpus_allowed", "Mems_allowed", "Umask"};
  char line[4096];
  FILE* status = fopen("/proc/self/status", "re");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    for (size_t i = 0; i < sizeof kWanted / sizeof kWanted[0]; ++i) {
      const size_t size = strlen(kWanted[i]);
      if (strncmp(line, kWanted[i], size) == 0 && line[size] == ':')
        fprintf(out, "status %.*s\t%s", (int)size, line, line + size + 1);
    }
  }
  if (status != NULL) fclose(status);
}

static void write_file(FILE* out, const char* path) {
  char text[4096];
  FILE* file = fopen(path, "re");
  const size_t size = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  text[strcspn(text, "\n")] = '\0';
  fprintf(out, "file %s\t%s\n", path, text);
  if (file != NULL) fclose(file);
}

static void write_prctl(FILE* out) {
  static const struct {
    const char* name;
    int option;
  } kAsked[] = {{"dumpable", PR_GET_DUMPABLE},       {"keepcaps", PR_GET_KEEPCAPS},
                {"securebits", PR_GET_SECUREBITS},   {"timerslack", PR_GET_TIMERSLACK},
                {"thp disable", PR_GET_THP_DISABLE}, {"timing", PR_GET_TIMING},
                {"memory failure", PR_MCE_KILL_GET}};
  for (size_t i = 0; i < sizeof kAsked / sizeof kAsked[0]; ++i) {
    fprintf(out, "prctl %s\t%d\n", kAsked[i].name, prctl(kAsked[i].option, 0, 0, 0, 0));
  }
  int number = -1;
  prctl(PR_GET_PDEATHSIG, &number);
  fprintf(out, "parent death signal\t%d\n", number);
  number = -1;
  prctl(PR_GET_CHILD_SUBREAPER, &number);
  fprintf(out, "child subreaper\t%d\n", number);
}

static void write_scheduling(FILE* out) {
  struct sched_param parameters = {0};
  sched_getparam(0, &parameters);
  fprintf(out, "nice\t%d\n", getpriority(PRIO_PROCESS, 0));
  fprintf(out, "scheduling\t%d priority %d\n", sched_getscheduler(0), parameters.sched_priority);
  fprintf(out, "I/O priority\t%ld\n", syscall(SYS_ioprio_get, 1, 0));
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; ++which) {
    struct itimerval timer;
    getitimer((__itimer_which_t)which, &timer);
    fprintf(out, "timer %d\t%s\n", which, timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 ? "runs" : "none");
  }
}

static void write_terminal(FILE* out) {
  fprintf(out, "session\t%d\n", getsid(0));
  fprintf(out, "process group\t%d\n", getpgrp());
  fprintf(out, "parent\t%d\n", getppid());
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  fprintf(out, "terminal\t%s\n", terminal < 0 ? "none" : "there");
  if (terminal < 0) return;
  struct termios modes;
  memset(&modes, 0, sizeof modes);
  tcgetattr(terminal, &modes);
  fprintf(out, "foreground group\t%d\n", tcgetpgrp(terminal));
  fprintf(out, "terminal modes\t%x %x %x %x\n", modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag);
  close(terminal);
}

/* Whether it worked. */
int describe_process(void) {
  char text[4096];
  FILE* out = fopen(getenv("PROBE_FILE"), "we");
  if (out == NULL) return 0;
  write_descriptors(out);
  write_limits(out);
  write_status(out);
  write_prctl(out);
  write_scheduling(out);
  write_terminal(out);
  for (char** entry = environ; *entry != NULL; ++entry)
    fprintf(out, "variable %.*s\t%s\n", (int)strcspn(*entry, "="), *entry, *entry);
  fprintf(out, "directory\t%s\n", getcwd(text, sizeof text));
  fprintf(out, "personality\t%x\n", (unsigned)personality(0xffffffff));
  static const char* const kFiles[] = {"/proc/self/coredump_filter", "/proc/self/oom_score_adj", "/proc/self/cgroup",
                                       "/proc/self/loginuid"};
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i) write_file(out, kFiles[i]);
  static const char* const kNamespaces[] = {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"};
  for (size_t i = 0; i < sizeof kNamespaces / sizeof kNamespaces[0]; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", kNamespaces[i]);
    const ssize_t size = readlink(path, text, sizeof text - 1);
    fprintf(out, "namespace %s\t%.*s\n", kNamespaces[i], (int)(size < 0 ? 0 : size), text);
  }
  return fclose(out) == 0;
}

#ifndef PROBE_LIBRARY
int main(int count, char** words) {
  if (!describe_process()) return 1;
  FILE* out = fopen(getenv("PROBE_FILE"), "ae");
  if (out == NULL) return 1;
  for (int i = 0; i < count; ++i) fprintf(out, "argument %d\t%s\n", i, words[i]);
  return fclose(out) == 0 ? 0 : 1;
}
#endif
