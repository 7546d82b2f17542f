/* What a program that is about to start may do, judged by the names in its ELF file: those of functions that it calls
 * and libraries that it needs. Runs between vfork and exec: it allocates and maps nothing, and does not wait. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

enum {
  MOST_HEADERS = 32,
  MOST_NAMES = 1 << 20,
  MOST_NAME = 32,
  MOST_INTERPRETERS = 3,
  MOST_LINE = 256,
  MOST_PATH = 4096
};

struct names {
  bool forks, threads;
};

static void note_name(const char* name, struct names* found) {
  const bool python = strcmp(name, "PyOS_BeforeFork") == 0 || strncmp(name, "libpython", 9) == 0;
  if (python || strcmp(name, "fork") == 0 || strcmp(name, "forkpty") == 0) found->forks = true;
  if (python || strcmp(name, "pthread_create") == 0 || is_runtime_library(name)) found->threads = true;
}

/* Reads names that each end with a NUL; those longer than any we look for are cut. */
static void read_names(int fd, uint64_t offset, uint64_t size, struct names* found) {
  char buffer[4096], name[MOST_NAME + 1];
  size_t length = 0;
  const uint64_t end = offset + (size < MOST_NAMES ? size : MOST_NAMES);
  for (ssize_t got; offset < end && (got = pread(fd, buffer, sizeof buffer, (off_t)offset)) > 0;
       offset += (uint64_t)got) {
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] != '\0') {
        if (length < MOST_NAME) name[length++] = buffer[i];
        continue;
      }
      name[length] = '\0';
      note_name(name, found);
      length = 0;
    }
  }
}

/* The offset of an address in the file, by its segments; 0: none. */
static uint64_t offset_of(const Elf64_Phdr* headers, size_t count, uint64_t address) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t into = address - headers[i].p_vaddr;
    if (headers[i].p_type == PT_LOAD && address >= headers[i].p_vaddr && into < headers[i].p_filesz) {
      return headers[i].p_offset + into;
    }
  }
  return 0;
}

static bool read_at(int fd, void* to, size_t size, uint64_t offset) {
  return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static void read_elf(int fd, struct names* found) {
  Elf64_Ehdr file;
  Elf64_Phdr headers[MOST_HEADERS];
  if (!read_at(fd, &file, sizeof file, 0) || file.e_ident[EI_CLASS] != ELFCLASS64) return;
  const size_t count = file.e_phnum < MOST_HEADERS ? file.e_phnum : MOST_HEADERS;
  if (file.e_phentsize != sizeof *headers || !read_at(fd, headers, count * sizeof *headers, file.e_phoff)) return;
  uint64_t strings = 0, size = 0;
  for (size_t i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at < headers[i].p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!read_at(fd, &entry, sizeof entry, headers[i].p_offset + at) || entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) strings = offset_of(headers, count, entry.d_un.d_ptr);
      if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
    }
  }
  if (strings != 0) read_names(fd, strings, size, found);
}

/* Opens a program, which it finds as execvp() does. */
static int open_program(const char* file) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (strchr(file, '/') != NULL) return open(file, flags);
  const char* folders = getenv("PATH");
  char path[MOST_PATH];
  for (const char* at = folders != NULL ? folders : "/bin:/usr/bin"; *at != '\0';) {
    const size_t size = strcspn(at, ":");
    if (size + strlen(file) + 2 <= sizeof path) {
      memcpy(path, at, size);
      path[size] = '/';
      memcpy(path + size + 1, file, strlen(file) + 1);
      if (access(path, X_OK) == 0) return open(path, flags);
    }
    at += size + (at[size] != '\0');
  }
  return -1;
}

/* The program that reads the script: of "#!/usr/bin/env python3 -u" it is "python3". False: `line` is no such line. */
static bool find_interpreter(char* line, char** interpreter) {
  if (strncmp(line, "#!", 2) != 0) return false;
  line[strcspn(line, "\n")] = '\0';
  char* rest = line + 2;
  for (char* word; (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
    const char* slash = strrchr(word, '/');
    *interpreter = word;
    if (strcmp(slash != NULL ? slash + 1 : word, "env") != 0 && *word != '-') return true;
  }
  return false;
}

bool forks_beside_threads(const char* program) {
  const int saved = errno;
  struct names found = {false, false};
  char lines[2][MOST_LINE + 1], *file = NULL;
  for (int i = 0; i < MOST_INTERPRETERS; ++i) {
    const int fd = open_program(i == 0 ? program : file);
    if (fd < 0) break;
    char* line = lines[i % 2];
    const ssize_t got = pread(fd, line, MOST_LINE, 0);
    line[got > 0 ? got : 0] = '\0';
    const bool is_script = find_interpreter(line, &file);
    if (!is_script) read_elf(fd, &found);
    close(fd);
    if (!is_script) break;
  }
  errno = saved;
  return found.forks && found.threads;
}
