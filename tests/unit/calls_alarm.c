// A library for procfs_elf_symbols_test.cc and watch_alarm_test.cc, linked twice: bound lazily, and when it is loaded.
#include <unistd.h>

unsigned mprun_test_alarm(unsigned seconds);
unsigned mprun_test_alarm(unsigned seconds) { return alarm(seconds); }

int mprun_test_pause(void);
int mprun_test_pause(void) { return pause(); }
