/* A note is one datagram to an abstract socket of mprun's: the adapter, a newline, the text. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

void note(const char* adapter, const char* format, ...) {
  const char* name = notes_address();
  if (*name == '\0') return;
  const int saved = errno;
  char text[1024];
  int size = snprintf(text, sizeof text, "%s\n", adapter);
  va_list arguments;
  va_start(arguments, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): version 14 loses sight of va_start here
  const int more = vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
  va_end(arguments);
  size += more;
  if (size >= (int)sizeof text) size = sizeof text - 1;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, name, strlen(name));
  const socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    (void)!sendto(fd, text, (size_t)size, MSG_NOSIGNAL, (struct sockaddr*)&address, address_size);
    close(fd);
  }
  errno = saved;
}
