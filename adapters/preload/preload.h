/* What the files of the preload library share. The library is loaded into every process of a job, the user's own
 * programs included, so nothing in it allocates, keeps a descriptor open, starts a thread (except python_gil.c,
 * briefly) or leaves errno changed. It is C, and exports only the functions it interposes and the symbols that others
 * look up by name. */
#ifndef MPRUN_PRELOAD_H
#define MPRUN_PRELOAD_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>

#include <mprun/fork_hooks.h>

#define MPRUN_EXPORT __attribute__((visibility("default")))

/* --- hook_registry.c --- */

/* <mprun/fork_hooks.h> looks these up by name. */
MPRUN_EXPORT int mprun_register_fork_hook(const struct mprun_fork_hook* hook);
MPRUN_EXPORT int mprun_unregister_fork_hook(const char* name, void* data);

enum { MOST_FORK_HOOKS = 64 };

/* A fork in progress: the hooks whose prepare succeeded, in the order in which they ran. */
struct fork_in_flight {
  const void* caller; /* of fork(); NULL: not known */
  size_t prepared;
  unsigned char slots[MOST_FORK_HOOKS];
};

/* Runs the prepare hooks. False: the fork is refused and everything is undone. `may_refuse`: false where the caller can
 * no longer stop the fork. */
bool prepare_hooks(struct fork_in_flight* fork, bool may_refuse);
void parent_hooks(const struct fork_in_flight* fork);
void child_hooks(const struct fork_in_flight* fork);
/* The caller of this thread's fork(), while its prepare hooks run; NULL outside or if not known. */
const void* fork_caller(void);

/* Registers one of mprun's own hooks; each fork checks `adapter_is_on` for its name. */
void register_adapter(const struct mprun_fork_hook* hook);

/* --- settings.c --- */

/* Reads the settings from the environment, once, while the process starts. */
void read_settings(void);
/* False if MPRUN_ADAPTERS switched it off ("-libgomp,-quiet", "-all"). */
bool adapter_is_on(const char* name);
/* MPRUN_QUIET_SECONDS, in milliseconds; 2000 unless set. */
unsigned quiet_milliseconds(void);
/* The abstract address that notes are sent to, without its leading NUL; "" if no mprun listens. */
const char* notes_address(void);

/* --- program.c --- */

/* True if the program, or the interpreter of the script, forks by itself and can have threads. Safe between vfork and
 * exec. */
bool forks_beside_threads(const char* program);

/* --- notes.c --- */

/* Called after the settings were read. */
void find_listener(void);
/* Sends mprun a message for the user; dropped if no mprun listens. Safe between vfork and exec. */
void note(const char* adapter, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Sends a complete note: the adapter, a newline, the text. */
void send_note(const char* text, size_t size, bool wait);
/* Like note(), but waits until mprun has room for it: a second at most, in all. For `mprun doctor`. */
void note_and_wait(const char* adapter, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* --- objects.c --- */

/* A loaded shared object (or the program itself). Valid while it stays loaded. */
struct loaded_object {
  const char* path; /* "" for the program */
  ElfW(Addr) base;
  const ElfW(Phdr) * headers;
  size_t header_count;
  size_t thread_local_module; /* 0: it has no thread-local data */
};

/* Calls `visit` for every loaded object, including those opened RTLD_LOCAL or by dlmopen, until it returns false. Takes
 * no lock that a constructor or an import in another thread can hold for long. */
void each_object(bool (*visit)(const struct loaded_object* object, void* data), void* data);
/* The address of a symbol that the object itself defines, not its dependencies; NULL if it has none. */
void* find_symbol(const struct loaded_object* object, const char* name);
/* The calling thread's thread-local data of the object; NULL if it has none. May wait for the loader. */
void* find_thread_local_data(const struct loaded_object* object);
/* Resets `data`, found by the function above, to its values in a new thread. */
void reset_thread_local_data(const struct loaded_object* object, void* data);
bool object_holds(const struct loaded_object* object, const void* address);
/* A number that changes whenever an object is loaded or unloaded. */
uint64_t objects_generation(void);

/* --- runtimes.c --- */

enum { RUNTIME_LIBGOMP };

/* A kind of runtime and how it is recognised; "" where a field has no meaning. */
struct runtime_kind {
  char name[20];
  char adapter[12]; /* the adapter for it */
  char symbol[40];  /* the object defines this */
  char without[20]; /* and not this */
  char file[24];    /* else: its file name begins like this */
};

bool is_libgomp(const struct loaded_object* object);
/* Whether a library of this name ("libgomp.so.1") has threads. */
bool is_runtime_library(const char* file);
/* Calls `visit` with every kind of runtime that the object holds. Calls OpenBLAS to find out how it was built. */
void each_runtime(const struct loaded_object* object, void (*visit)(const struct runtime_kind*, void*), void* data);

/* --- ../openmp/libgomp.c --- */

/* True if threads of this copy of libgomp wait for work. */
bool has_team(const struct loaded_object* library);

/* --- threads.c --- */

int64_t monotonic_ns(void);
/* How many threads this process has; costs nothing in a process that never had more than one. */
unsigned thread_count(void);
/* Calls `visit` with the ID of every thread but the calling one, until it returns false. */
void each_other_thread(bool (*visit)(pid_t thread, void* data), void* data);
/* Reads /proc/self/task/THREAD/FILE into `text`, NUL-terminated; false if the thread has ended. */
bool read_thread_file(pid_t thread, const char* file, char* text, size_t size);

/* --- python_gil.c --- */

/* True in a Python that takes nothing from the environment (-I, -E, -S): it does not load mprun's sitecustomize, and so
 * has no adapters that are written in Python. */
bool python_leaves_adapters_out(void);

/* --- alarms.c --- */

/* Records that this process requests a signal from a timer, when it_value has passed. */
void remember_alarm(const struct itimerval* alarm);
/* The same for a timer that still runs from before exec. */
void inherit_alarm(void);
void forget_alarm(void);

typedef int exec_function(const char* program, char* const argv[], char* const envp[]);
/* Runs `exec`, with MPRUN_ALARM_VARIABLE in the environment if an alarm is running. Safe between vfork and exec. */
int exec_with_alarm(exec_function* exec, const char* program, char* const argv[], char* const envp[]);

/* --- lifecycle_notes.c --- */

/* Reports that `process` was sent SIGTERM. */
void note_termination(pid_t process);
/* Reports that a child of this process did not exit with 0; `status` as by waitpid(). */
void note_end(pid_t process, int status);

/* --- libc_wrappers.c --- */

/* Finds libc's own functions, before main. */
void find_witnessed(void);

/* --- the adapters, in the order they register; the last one prepares first --- */

void register_history(void); /* lifecycle_notes.c */
void register_python(void);  /* python_gil.c */
void register_libgomp(void); /* ../openmp/libgomp.c */
void register_tbb(void);     /* ../tbb/tbb.c */
void register_doctor(void);  /* doctor.c */
void register_quiet(void);   /* quiescence.c */

#endif
