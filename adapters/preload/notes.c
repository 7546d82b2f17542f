/* A note is one datagram to an abstract socket of mprun's: the adapter, a newline, the text. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

enum { MOST_TEXT = 1024 };

static bool send_text(const char* adapter, const char* format, va_list arguments, bool wait) {
  const char* name = notes_address();
  if (*name == '\0') return false;
  const int saved = errno;
  char text[MOST_TEXT];
  int size = snprintf(text, sizeof text, "%s\n", adapter);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): version 14 loses sight of va_start here
  size += vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
  if (size >= (int)sizeof text) size = sizeof text - 1;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, name, strlen(name));
  const socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  bool sent = false;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    const struct timeval most = {5, 0};
    if (wait) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    sent = sendto(fd, text, (size_t)size, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT), (struct sockaddr*)&address,
                  address_size) == size;
    close(fd);
  }
  errno = saved;
  return sent;
}

void note(const char* adapter, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)send_text(adapter, format, arguments, false);
  va_end(arguments);
}

bool tell(const char* adapter, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const bool sent = send_text(adapter, format, arguments, true);
  va_end(arguments);
  return sent;
}
