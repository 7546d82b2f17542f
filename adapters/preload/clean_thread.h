/* Functions of the preload library that the host calls. Weak: the library may not be loaded. */
#ifndef MPRUN_CLEAN_THREAD_H
#define MPRUN_CLEAN_THREAD_H

#include <stdbool.h>

/* True if an OpenMP library is loaded that only survives forks of a thread without a team. */
extern bool mprun_wants_clean_thread(void) __attribute__((weak));

/* Declares that the calling thread never ran a region of such a library, and never will. */
extern void mprun_declare_clean_thread(void) __attribute__((weak));

#endif
