// A library for procfs_elf_symbols_test.cc, linked with only the old hash table.
extern int mprun_test_undefined(void) __attribute__((weak));

int mprun_test_first = 1;
long mprun_test_second[2] = {2, 3};

int mprun_test_function(void);
int mprun_test_function(void) { return mprun_test_undefined ? mprun_test_undefined() : mprun_test_first; }
