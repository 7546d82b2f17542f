#define _GNU_SOURCE
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

enum { MOST_TEXT = 4096, MOST_SITES = 4096, MOST_FRAMES = 6, LOG_DESCRIPTOR = 900, KILLED = -1 };

/* Guard and supervisor share it: a fault that strikes once strikes in one of them. */
struct shared {
  unsigned long calls; /* that the plan counts */
  unsigned long storm;
  uint64_t sites[MOST_SITES];
};

static struct shared* state;
static long (*kernel)(long number, ...); /* libc's syscall(): ours is among the wrappers */
static int log_fd = -1;
static bool is_short, is_storm;
static char wanted_call[64];
static int wanted_error;
static unsigned long wanted_number;
static bool is_forever;
static uint64_t wanted_site;
static uintptr_t program_begin, program_end;
static __thread bool busy;

/* --- where a call comes from --- */

struct frames {
  uint64_t hash;
  int count;
  uintptr_t offsets[MOST_FRAMES];
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context* context, void* data) {
  struct frames* frames = data;
  const uintptr_t address = _Unwind_GetIP(context);
  if (address < program_begin || address >= program_end) return _URC_NO_REASON;
  frames->offsets[frames->count] = address - program_begin;
  frames->hash = (frames->hash ^ frames->offsets[frames->count]) * 0x100000001b3U;
  return ++frames->count == MOST_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static struct frames frames_of(const char* call) {
  struct frames frames = {.hash = 0xcbf29ce484222325U};
  for (const char* c = call; *c != '\0'; ++c) frames.hash = (frames.hash ^ (unsigned char)*c) * 0x100000001b3U;
  _Unwind_Backtrace(add_frame, &frames);
  return frames;
}

static int find_program(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  (void)data;
  program_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    if (part->p_type == PT_LOAD && end > program_end) program_end = end;
  }
  return 1; /* the first object is the program */
}

/* --- the log --- */

static void log_line(const char* what, const char* call, const struct frames* frames) {
  if (log_fd < 0) return;
  char text[256];
  int size = snprintf(text, sizeof text, "%s %s %016lx", what, call, (unsigned long)frames->hash);
  for (int i = 0; i < frames->count; ++i) {
    size += snprintf(text + size, sizeof text - (size_t)size, " %lx", (unsigned long)frames->offsets[i]);
  }
  text[size++] = '\n';
  kernel(SYS_write, log_fd, text, (size_t)size);
}

static void log_new_site(const char* call, const struct frames* frames) {
  for (uint64_t probe = 0; probe < MOST_SITES; ++probe) {
    uint64_t* place = &state->sites[(frames->hash + probe) % MOST_SITES];
    uint64_t seen = 0;
    if (__atomic_compare_exchange_n(place, &seen, frames->hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      log_line("site", call, frames);
      return;
    }
    if (seen == frames->hash) return;
  }
}

/* --- the plan --- */

static int decide(const char* call) {
  const bool counts = wanted_error != 0 && strcmp(call, wanted_call) == 0;
  if (wanted_error != 0 && !counts) return 0;
  if (wanted_error == 0 && log_fd < 0) return 0;
  struct frames frames = {0};
  if (wanted_error == 0 || wanted_site != 0 || log_fd >= 0) frames = frames_of(call);
  if (wanted_error == 0) {
    log_new_site(call, &frames);
    return 0;
  }
  const unsigned long before = __atomic_load_n(&state->calls, __ATOMIC_RELAXED);
  const bool struck = before >= wanted_number;
  if (!struck && wanted_site != 0 && frames.hash != wanted_site) return 0;
  const unsigned long number = struck ? before + 1 : __atomic_add_fetch(&state->calls, 1, __ATOMIC_RELAXED);
  if (number < wanted_number || (number > wanted_number && !is_forever)) return 0;
  log_line("fault", call, &frames);
  if (wanted_error == KILLED) kernel(SYS_kill, kernel(SYS_getpid), SIGKILL);
  return wanted_error;
}

int injected(const char* call) {
  if (state == NULL || busy) return 0;
  busy = true;
  const int error = decide(call);
  busy = false;
  return error;
}

int injected_or_interrupted(const char* call) {
  if (state != NULL && is_storm) {
    const unsigned long number = __atomic_add_fetch(&state->storm, 1, __ATOMIC_RELAXED);
    if (((number * 0x9e3779b97f4a7c15U) >> 60) < 8) return EINTR; /* in no pattern that a loop of calls could share */
  }
  return injected(call);
}

size_t shortened(int fd, size_t size) {
  struct stat info;
  if (state == NULL || !is_short || size < 2 || kernel(SYS_fstat, fd, &info) != 0) return size;
  const bool stream = S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode);
  return stream ? (size + 1) / 2 : size;
}

static void read_plan(const char* text) {
  is_short = strcmp(text, "short") == 0;
  is_storm = strcmp(text, "storm") == 0;
  if (is_short || is_storm) return;
  char when[16] = "";
  unsigned long site = 0;
  const int read = sscanf(text, "%63[^:]:%d:%lu:%15[^:]:%lx", wanted_call, &wanted_error, &wanted_number, when, &site);
  if (read < 4) {
    static const char kWrong[] = "faults: FAULT_CALL is CALL:ERRNO:N:once|forever[:SITE]\n";
    kernel(SYS_write, 2, kWrong, sizeof kWrong - 1);
    _exit(99);
  }
  is_forever = strcmp(when, "forever") == 0;
  wanted_site = site;
}

/* --- only here --- */

/* The processes that this one starts get an environment without us. */
static void leave_environment(void) {
  const char* preload = getenv("LD_PRELOAD");
  Dl_info us;
  char rest[MOST_TEXT] = "";
  if (preload != NULL && dladdr((const void*)leave_environment, &us) != 0) {
    const size_t own = strlen(us.dli_fname);
    for (const char* word = preload; *word != '\0';) {
      const size_t size = strcspn(word, ": ");
      const bool is_us = size == own && memcmp(word, us.dli_fname, own) == 0;
      if (size > 0 && !is_us && strlen(rest) + size + 2 < sizeof rest) {
        if (rest[0] != '\0') strcat(rest, ":");
        strncat(rest, word, size);
      }
      word += size + (word[size] != '\0');
    }
  }
  if (rest[0] == '\0') {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", rest, 1);
  }
  for (const char* const* name = (const char* const[]){"FAULT_PROGRAM", "FAULT_CALL", "FAULT_LOG", NULL}; *name;
       ++name) {
    unsetenv(*name);
  }
}

static bool is_the_program(void) {
  char path[MOST_TEXT];
  const char* wanted = getenv("FAULT_PROGRAM");
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return wanted != NULL && size > 0 && (size_t)size == strlen(wanted) && memcmp(path, wanted, (size_t)size) == 0;
}

__attribute__((constructor)) static void begin(void) {
  if (!is_the_program()) return;
  *(void**)&kernel = dlsym(RTLD_NEXT, "syscall");
  const char* plan = getenv("FAULT_CALL");
  const char* log = getenv("FAULT_LOG");
  if (plan != NULL) read_plan(plan);
  if (log != NULL) {
    const int fd = (int)kernel(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_fd = (int)kernel(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOG_DESCRIPTOR);
    kernel(SYS_close, fd);
  }
  dl_iterate_phdr(find_program, NULL);
  (void)frames_of("warm"); /* the unwinder allocates at its first use */
  void* memory =
      (void*)kernel(SYS_mmap, NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  leave_environment();
  if (memory != MAP_FAILED) state = memory;
}
