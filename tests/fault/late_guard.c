/* A library for LD_PRELOAD: moving another process into a process group is delayed by half a second, and starting a new
 * session by a whole second. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

int setpgid(pid_t pid, pid_t group) {
  int (*const real)(pid_t, pid_t) = (int (*)(pid_t, pid_t))dlsym(RTLD_NEXT, "setpgid");
  if (pid != 0 && pid != getpid()) usleep(500000);
  return real(pid, group);
}

pid_t setsid(void) {
  pid_t (*const real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "setsid");
  usleep(999999);
  return real();
}
