/* Waits until a process outside creates a file in the given folder. */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(int count, char** arguments) {
  char events[4096];
  const int watch = inotify_init1(IN_CLOEXEC);
  if (count < 2 || watch < 0 || inotify_add_watch(watch, arguments[1], IN_CREATE) < 0) return 1;
  puts("ready");
  fflush(stdout);
  if (read(watch, events, sizeof events) <= 0) return 2;
  puts("done");
  return 0;
}
