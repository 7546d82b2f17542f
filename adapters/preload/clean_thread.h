/* What the host asks of the preload library in its process. Weak: the library may not be there. */
#ifndef MPRUN_CLEAN_THREAD_H
#define MPRUN_CLEAN_THREAD_H

#include <stdbool.h>

/* True if an OpenMP library is loaded that can only live through the forks of a thread without a team. */
extern bool mprun_wants_clean_thread(void) __attribute__((weak));

/* The calling thread never ran a region of such a library, nor will it. */
extern void mprun_declare_clean_thread(void) __attribute__((weak));

#endif
