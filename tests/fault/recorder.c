/* Records what processes do to the files below a directory, in one order, for disk.py to replay. A library that is
 * preloaded into mprun and all that it starts. A change is recorded after it was made; a sync twice, before and
 * after.
 *
 * RECORDER_ROOT  the directory, as /proc/self/fd names it
 * RECORDER_LOG   the file that the records are appended to, outside of it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LOG_DESCRIPTOR = 901 };

/* disk.py reads it as struct "<c7xQQQHHI". */
struct record {
  char kind;
  char unused[7];
  uint64_t inode;
  uint64_t at; /* offset, size, or the number of a sync */
  uint64_t length;
  uint16_t path_size;
  uint16_t other_size;
  uint32_t data_size;
};

static long (*kernel)(long number, ...);
static const char* root;
static size_t root_size;
static int log_fd = -1;

#define REAL(name)                 \
  static __typeof__(&(name)) real; \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
  *(void**)&kernel = dlsym(RTLD_NEXT, "syscall");
  root = getenv("RECORDER_ROOT");
  const char* log = getenv("RECORDER_LOG");
  if (root == NULL || log == NULL) return;
  root_size = strlen(root);
  const int fd = (int)kernel(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  log_fd = (int)kernel(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOG_DESCRIPTOR);
  kernel(SYS_close, fd);
}

/* mprun closes all descriptors that it does not know: open it again. */
static int log_descriptor(void) {
  if (root == NULL) return -1;
  if (log_fd >= 0 && kernel(SYS_fcntl, log_fd, F_GETFD) < 0) begin();
  return log_fd;
}

static void append(char kind, uint64_t inode, uint64_t at, uint64_t length, const char* path, const char* other,
                   const void* data, size_t data_size) {
  const struct record head = {
      kind, {0}, inode, at, length, (uint16_t)strlen(path), (uint16_t)strlen(other), (uint32_t)data_size};
  const struct iovec parts[] = {{(void*)&head, sizeof head},
                                {(void*)path, head.path_size},
                                {(void*)other, head.other_size},
                                {(void*)data, data_size}};
  const int error = errno;
  kernel(SYS_writev, log_descriptor(), parts, 4); /* O_APPEND: whole, after what others wrote */
  errno = error;
}

/* The path of an open file below the root; false: it is elsewhere. */
static bool path_of(int fd, char path[PATH_MAX]) {
  if (log_descriptor() < 0) return false;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = kernel(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return strncmp(path, root, root_size) == 0 && path[root_size] == '/';
}

/* The same for a path argument of a call. */
static bool whole_path(int folder, const char* given, char path[PATH_MAX]) {
  if (log_descriptor() < 0) return false;
  char before[PATH_MAX] = "";
  if (given[0] != '/') {
    char link[64] = "/proc/self/cwd";
    if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const long size = kernel(SYS_readlinkat, AT_FDCWD, link, before, PATH_MAX - 2);
    if (size < 0) return false;
    before[size] = '/';
    before[size + 1] = '\0';
  }
  if (snprintf(path, PATH_MAX, "%s%s", before, given) >= PATH_MAX) return false;
  return strncmp(path, root, root_size) == 0 && path[root_size] == '/';
}

static bool inode_of(int fd, struct stat* info) { return kernel(SYS_fstat, fd, info) == 0; }

/* --- names --- */

static int open_any(int folder, const char* given, int flags, mode_t mode) {
  char path[PATH_MAX];
  struct stat info;
  const bool ours = (flags & (O_CREAT | O_TRUNC)) != 0 && whole_path(folder, given, path);
  const bool there = ours && kernel(SYS_newfstatat, folder, given, &info, 0) == 0;
  const int fd = (int)kernel(SYS_openat, folder, given, flags, mode);
  if (fd < 0 || !ours || !inode_of(fd, &info) || !S_ISREG(info.st_mode)) return fd;
  if (!there) append('C', info.st_ino, 0, 0, path, "", NULL, 0);
  if (there && (flags & O_TRUNC) != 0) append('T', info.st_ino, 0, 0, "", "", NULL, 0);
  return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

#define MODE                                     \
  va_list arguments;                             \
  va_start(arguments, flags);                    \
  const mode_t mode = mode_of(flags, arguments); \
  va_end(arguments)

int open(const char* path, int flags, ...) {
  MODE;
  return open_any(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  MODE;
  return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  MODE;
  return open_any(folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  MODE;
  return open_any(folder, path, flags, mode);
}

int mkdir(const char* given, mode_t mode) {
  char path[PATH_MAX];
  const int result = (int)kernel(SYS_mkdirat, AT_FDCWD, given, mode);
  if (result == 0 && whole_path(AT_FDCWD, given, path)) append('M', 0, 0, 0, path, "", NULL, 0);
  return result;
}

static int renamed(char kind, int result, int a, const char* from, int b, const char* to) {
  char source[PATH_MAX];
  char target[PATH_MAX];
  if (result == 0 && whole_path(a, from, source) && whole_path(b, to, target))
    append(kind, 0, 0, 0, source, target, NULL, 0);
  return result;
}

int rename(const char* from, const char* to) {
  return renamed('R', (int)kernel(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), AT_FDCWD, from, AT_FDCWD, to);
}

int renameat(int a, const char* from, int b, const char* to) {
  return renamed('R', (int)kernel(SYS_renameat2, a, from, b, to, 0), a, from, b, to);
}

int link(const char* from, const char* to) {
  return renamed('L', (int)kernel(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0), AT_FDCWD, from, AT_FDCWD, to);
}

int linkat(int a, const char* from, int b, const char* to, int flags) { /* os.link() since Python 3.14 */
  return renamed('L', (int)kernel(SYS_linkat, a, from, b, to, flags), a, from, b, to);
}

static int removed(int result, int folder, const char* given) {
  char path[PATH_MAX];
  if (result == 0 && whole_path(folder, given, path)) append('U', 0, 0, 0, path, "", NULL, 0);
  return result;
}

int unlink(const char* path) { return removed((int)kernel(SYS_unlinkat, AT_FDCWD, path, 0), AT_FDCWD, path); }

int rmdir(const char* path) { return removed((int)kernel(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR), AT_FDCWD, path); }

int unlinkat(int folder, const char* path, int flags) {
  return removed((int)kernel(SYS_unlinkat, folder, path, flags), folder, path);
}

int remove(const char* path) {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

/* --- what is in files --- */

static void changed(char kind, int fd, uint64_t at, uint64_t length, const void* data, size_t data_size) {
  char path[PATH_MAX];
  struct stat info;
  if (path_of(fd, path) && inode_of(fd, &info) && S_ISREG(info.st_mode))
    append(kind, info.st_ino, at, length, "", "", data, data_size);
}

ssize_t write(int fd, const void* from, size_t size) {
  const ssize_t count = kernel(SYS_write, fd, from, size);
  if (count > 0 && log_fd >= 0) {
    const int error = errno;
    const off_t end = kernel(SYS_lseek, fd, 0, SEEK_CUR);
    errno = error;
    if (end >= count) changed('W', fd, (uint64_t)(end - count), 0, from, (size_t)count);
  }
  return count;
}

ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  const ssize_t count = kernel(SYS_pwrite64, fd, from, size, at);
  if (count > 0) changed('W', fd, (uint64_t)at, 0, from, (size_t)count);
  return count;
}

int ftruncate(int fd, off_t size) {
  const int result = (int)kernel(SYS_ftruncate, fd, size);
  if (result == 0) changed('T', fd, (uint64_t)size, 0, NULL, 0);
  return result;
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  const int result = (int)kernel(SYS_fallocate, fd, mode, at, size);
  if (result == 0) changed((mode & FALLOC_FL_PUNCH_HOLE) != 0 ? 'P' : 'A', fd, (uint64_t)at, (uint64_t)size, NULL, 0);
  return result;
}

ssize_t pwrite64(int fd, const void* from, size_t size, off_t at) __attribute__((alias("pwrite")));
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int fallocate64(int fd, int mode, off_t at, off_t size) __attribute__((alias("fallocate")));

/* --- the disk --- */

static uint64_t next_sync(void) {
  static uint32_t count;
  return ((uint64_t)kernel(SYS_getpid) << 32) | __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}

/* S and D begin an fsync and an fdatasync of a file or directory, F the sync of a file system; E ends one of them. */
static void sync_begins(char kind, int fd, uint64_t number) {
  char path[PATH_MAX];
  struct stat info;
  if (!path_of(fd, path) || !inode_of(fd, &info)) return;
  append(kind, S_ISDIR(info.st_mode) ? 0 : info.st_ino, number, 0, path, "", NULL, 0);
}

static int synced(char kind, long call, int fd) {
  const uint64_t number = next_sync();
  if (log_descriptor() >= 0) sync_begins(kind, fd, number);
  const int result = (int)kernel(call, fd);
  if (result == 0 && log_fd >= 0) append('E', 0, number, 0, "", "", NULL, 0);
  return result;
}

int fsync(int fd) { return synced('S', SYS_fsync, fd); }
int fdatasync(int fd) { return synced('D', SYS_fdatasync, fd); }
int syncfs(int fd) { return synced('F', SYS_syncfs, fd); }

long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (int i = 0; i < 6; ++i) words[i] = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_io_submit && log_descriptor() >= 0) {
    struct iocb* const* list = (struct iocb* const*)words[2];
    for (long i = 0; i < words[1]; ++i) {
      list[i]->aio_data = next_sync();
      if (list[i]->aio_lio_opcode == IOCB_CMD_FSYNC) sync_begins('S', (int)list[i]->aio_fildes, list[i]->aio_data);
      if (list[i]->aio_lio_opcode == IOCB_CMD_FDSYNC) sync_begins('D', (int)list[i]->aio_fildes, list[i]->aio_data);
    }
  }
  const long result = kernel(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (number == SYS_io_getevents && log_descriptor() >= 0) {
    const struct io_event* events = (const struct io_event*)words[3];
    for (long i = 0; i < result; ++i) {
      if (events[i].res == 0) append('E', 0, events[i].data, 0, "", "", NULL, 0);
    }
  }
  return result;
}
