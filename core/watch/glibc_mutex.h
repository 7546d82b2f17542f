// The mutexes of glibc, as the memory of a watched process shows them: the one place that knows their layout. Used by
// the decoder of futex waits and by the search for orphaned locks. Pure.
//
// Other libraries have locks whose waits look alike: what counts is waited for in glibc's own code for mutexes, and
// every word of it is that of a mutex of an ordinary kind.
#pragma once

#include "watch/sample.h"

namespace mprun {

/// True for a thread blocked as glibc's pthread_mutex_lock() blocks: only then is it worth to read the mutex.
[[nodiscard]] bool seems_to_wait_for_mutex(const ThreadSample& thread);
/// The thread that has the mutex `thread` waits for, as the mutex says, by its own number; 0: it is no mutex, or nobody
/// has it.
[[nodiscard]] pid_t owner_of_mutex(ProcSource* proc, const ThreadSample& thread);

}  // namespace mprun
