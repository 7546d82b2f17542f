/* The wrappers of failing_calls.c ask here before each call whether it is to fail. Both files make one library that
 * tests preload into mprun's own processes, guard and supervisor; what mprun starts does not get it.
 *
 * FAULT_PROGRAM  the path of the program that it works in; in any other it does nothing
 * FAULT_CALL     CALL:ERRNO:N:once|forever[:SITE]: the N-th call fails, or that and all later ones of CALL;
 *                ERRNO -1: the process is killed there instead
 *                SITE (hexadecimal, from the log) counts only the calls that come from there
 *                short: reads and writes move half of what was asked for
 *                storm: half of the calls that a signal can interrupt were
 * FAULT_LOG      a file that gets a line for every site at first sight, and one for each fault
 */
#ifndef MPRUN_TESTS_FAULTS_H
#define MPRUN_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* The errno that this call is to fail with, or 0. `call` is a literal. */
int injected(const char* call);
/* The same for a call that a signal may interrupt. */
int injected_or_interrupted(const char* call);
/* How many of `size` bytes this call may move on `fd`. */
size_t shortened(int fd, size_t size);

#endif /* MPRUN_TESTS_FAULTS_H */
