/* After fork() oneTBB counts on workers that do not exist: a child then computes with one thread, or waits for them.
 * tbb::finalize ends them, and the next parallel algorithm on either side starts new ones. While another thread uses
 * TBB it does nothing, and returns false; but it waits without a limit for tasks that workers are running, and such a
 * task may wait for the thread that forks. So it is not called while a worker is blocked in a task. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload.h"

enum { FINALIZE_NOTHROWING = 1 }; /* oneapi/tbb/global_control.h */
enum { MOST_WORDS = 512, MOST_STACK = 64 << 20 };

static const char kName[] = "tbb";

/* tbb::task_scheduler_handle is one pointer. */
struct handle {
  void* control;
};

struct tbb {
  void (*get)(struct handle* handle);
  bool (*finalize)(struct handle* handle, intptr_t mode);
  unsigned long code_begin, code_end;
};

static void find_code(const struct loaded_object* object, struct tbb* tbb) {
  for (size_t i = 0; i < object->header_count; ++i) {
    const ElfW(Phdr)* header = &object->headers[i];
    if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0) continue;
    tbb->code_begin = object->base + header->p_vaddr;
    tbb->code_end = tbb->code_begin + header->p_memsz;
  }
}

static bool look_for_tbb(const struct loaded_object* object, void* data) {
  struct tbb* tbb = data;
  void* get = find_symbol(object, "_ZN3tbb6detail2r13getERNS0_2d121task_scheduler_handleE");
  void* finalize = find_symbol(object, "_ZN3tbb6detail2r18finalizeERNS0_2d121task_scheduler_handleEl");
  if (get == NULL || finalize == NULL) return true;
  memcpy(&tbb->get, &get, sizeof get);
  memcpy(&tbb->finalize, &finalize, sizeof finalize);
  find_code(object, tbb);
  return false;
}

static bool is_code(const struct tbb* tbb, unsigned long address) {
  return address >= tbb->code_begin && address < tbb->code_end;
}

/* Where an address of the library's code stands first, from `at` up; 0: nowhere. Read by system calls, which fail where
 * memory ends. */
static unsigned long find_address_of_code(const struct tbb* tbb, unsigned long at) {
  unsigned long words[MOST_WORDS];
  const unsigned long most = at + MOST_STACK;
  while (at < most) {
    const size_t size = sizeof words - at % sizeof words;
    struct iovec to = {words, size}, from = {(void*)at, size};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)size) return 0;
    for (size_t i = 0; i < size / sizeof *words; ++i) {
      if (is_code(tbb, words[i])) return at + i * sizeof *words;
    }
    at += size;
  }
  return 0;
}

/* Whether both addresses are in one mapping; true if that cannot be read. */
static bool are_in_one_mapping(unsigned long low, unsigned long high) {
  char text[8192]; /* a line has at most a path of 4096 bytes */
  size_t held = 0;
  ssize_t got = 0;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  bool found = false, one = true;
  while (fd >= 0 && !found && (got = read(fd, text + held, sizeof text - 1 - held)) > 0) {
    held += (size_t)got;
    text[held] = '\0';
    char *line = text, *end;
    while (!found && (end = strchr(line, '\n')) != NULL) {
      unsigned long from = 0, to = 0;
      found = sscanf(line, "%lx-%lx", &from, &to) == 2 && low >= from && low < to;
      one = !found || high < to;
      line = end + 1;
    }
    held -= (size_t)(line - text);
    memmove(text, line, held);
  }
  if (fd >= 0) close(fd);
  return one;
}

/* Whether the stack from `at` up has a frame of the library. What lies above a stack may be a library that calls it. */
static bool has_frame(const struct tbb* tbb, unsigned long at) {
  const unsigned long found = find_address_of_code(tbb, at);
  return found != 0 && are_in_one_mapping(at, found);
}

struct look {
  const struct tbb* tbb;
  bool in_task;
};

/* An idle worker is blocked in a system call of the library, made directly or through libc's syscall(). */
static bool look_at(pid_t thread, void* data) {
  struct look* look = data;
  char text[256];
  unsigned long stack = 0, counter = 0, caller = 0;
  if (!read_thread_file(thread, "syscall", text, sizeof text)) return true;
  if (sscanf(text, "%*s %*s %*s %*s %*s %*s %*s %lx %lx", &stack, &counter) != 2) return true; /* it runs */
  struct iovec to = {&caller, sizeof caller}, from = {(void*)stack, sizeof caller};
  if (stack % sizeof caller != 0 || process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof caller) return true;
  if (!is_code(look->tbb, counter) && !is_code(look->tbb, caller)) look->in_task = has_frame(look->tbb, stack);
  return !look->in_task;
}

static int end_workers(void* data, int64_t deadline) {
  (void)data;
  (void)deadline;
  struct tbb tbb = {NULL, NULL, 0, 0};
  each_object(look_for_tbb, &tbb);
  if (tbb.get == NULL) return 0;
  struct look look = {&tbb, false};
  each_other_thread(look_at, &look);
  struct handle handle = {NULL};
  if (!look.in_task) tbb.get(&handle);
  if (look.in_task || !tbb.finalize(&handle, FINALIZE_NOTHROWING)) {
    note(kName, "oneTBB was in use when the process forked: a child that uses it computes with one thread");
  }
  return 0;
}

void register_tbb(void) {
  const struct mprun_fork_hook hook = {
      .size = sizeof hook, .name = kName, .prepare = end_workers, .deadline_ms = 2000, .only_with_threads = 1};
  register_adapter(&hook);
}
