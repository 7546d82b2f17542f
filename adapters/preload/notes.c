/* A note is one datagram to an abstract socket of mprun: the adapter, a newline, the text. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

enum { MOST_TEXT = 1024 };

/* How long the threads of this process may still wait, in microseconds, all together. Any user can fill mprun's socket;
 * that delays a process by no more than this in its life. */
static atomic_long patience = 1000000;

static struct sockaddr_un address;
static socklen_t address_size; /* 0: no mprun listens */

void find_listener(void) {
  const char* name = notes_address();
  const size_t size = strlen(name);
  if (size == 0) return;
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name, size);
  address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

/* Uses syscall() only: a child has no page of libc's code yet, and would fetch one for each function. */
void send_note(const char* text, size_t size, bool wait) {
  if (address_size == 0) return;
  const int saved = errno;
  const int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    const long left = wait ? atomic_load(&patience) : 0;
    const struct timeval most = {left / 1000000, left % 1000000};
    if (left > 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    const int64_t before = left > 0 ? monotonic_ns() : 0;
    syscall(SYS_sendto, fd, text, size, MSG_NOSIGNAL | (left > 0 ? 0 : MSG_DONTWAIT), &address, address_size);
    if (left > 0) atomic_fetch_sub(&patience, (long)((monotonic_ns() - before) / 1000));
    syscall(SYS_close, fd);
  }
  errno = saved;
}

static void send_text(const char* adapter, const char* format, va_list arguments, bool wait) {
  if (address_size == 0) return;
  char text[MOST_TEXT];
  int size = snprintf(text, sizeof text, "%s\n", adapter);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): version 14 loses sight of va_start here
  size += vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
  send_note(text, size >= (int)sizeof text ? sizeof text - 1 : (size_t)size, wait);
}

void note(const char* adapter, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  send_text(adapter, format, arguments, false);
  va_end(arguments);
}

void note_and_wait(const char* adapter, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  send_text(adapter, format, arguments, true);
  va_end(arguments);
}
