#include <stdlib.h>
#include <string.h>

#include "preload.h"

enum { MOST_TEXT = 512 };

static char adapters[MOST_TEXT]; /* "-libgomp,-quiet" */
static char notes[108];          /* the size of sun_path */
static unsigned quiet_ms = 2000;

static void copy_text(char* to, size_t size, const char* from) {
  if (from != NULL && strlen(from) < size) memcpy(to, from, strlen(from) + 1);
}

void read_settings(void) {
  copy_text(adapters, sizeof adapters, getenv("MPRUN_ADAPTERS"));
  copy_text(notes, sizeof notes - 1, getenv("MPRUN_NOTES"));
  const char* seconds = getenv("MPRUN_QUIET_SECONDS");
  if (seconds != NULL) {
    char* end = NULL;
    const double value = strtod(seconds, &end);
    if (end != seconds && value >= 0 && value <= 3600) quiet_ms = (unsigned)(value * 1000);
  }
}

bool adapter_is_on(const char* name) {
  const size_t name_size = strlen(name);
  bool on = true;
  for (const char* word = adapters; *word != '\0';) {
    const size_t size = strcspn(word, ", ");
    const char sign = word[0];
    const char* subject = sign == '-' || sign == '+' ? word + 1 : word;
    const size_t subject_size = size - (size_t)(subject - word);
    const bool is_us = subject_size == name_size && memcmp(subject, name, name_size) == 0;
    if (is_us || (subject_size == 3 && memcmp(subject, "all", 3) == 0)) on = sign != '-';
    word += size + (word[size] != '\0');
  }
  return on;
}

unsigned quiet_milliseconds(void) { return quiet_ms; }
const char* notes_address(void) { return notes; }
