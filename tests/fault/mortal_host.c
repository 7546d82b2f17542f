/* A library for LD_PRELOAD: the host of the first HOSTS processes that a Python forks dies before they have asked the
 * kernel to end with it. Folders in HOSTS_FOLDER mark what was done. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The host has reported the fork and waits for the next. */
static void wait_until_it_sleeps(pid_t host) {
  for (char state = 0; state != 'S'; usleep(1000)) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", host);
    FILE* file = fopen(path, "re");
    if (file == NULL) return;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
    fclose(file);
  }
}

static int is_among_the_first(void) {
  for (int number = 0; number < atoi(getenv("HOSTS")); ++number) {
    char path[512];
    snprintf(path, sizeof path, "%s/%d", getenv("HOSTS_FOLDER"), number);
    if (mkdir(path, 0700) == 0) return 1;
  }
  return 0;
}

int prctl(int option, ...) {
  va_list rest;
  va_start(rest, option);
  unsigned long words[4];
  for (int i = 0; i < 4; ++i) words[i] = va_arg(rest, unsigned long);
  va_end(rest);
  const pid_t host = getppid();
  if (option == PR_SET_PDEATHSIG && strncmp(program_invocation_short_name, "python", 6) == 0 && is_among_the_first()) {
    wait_until_it_sleeps(host);
    kill(host, SIGKILL);
    while (getppid() == host) usleep(1000);
  }
  return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}
