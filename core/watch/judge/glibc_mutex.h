// Reads which thread another one waits for, in a mutex of glibc or in pthread_join(), from the memory of a watched
// process: the one place that knows their layout. Used by the decoder of futex waits and by the search for orphaned
// locks. Pure.
//
// Waits for locks of other libraries look alike. So a lock counts only if a thread waits for it in glibc's own code for
// mutexes, and every word of it is that of a mutex of an ordinary kind.
#pragma once

#include "watch/sample/sample.h"

namespace mprun {

/// Whether a mutex is PTHREAD_PROCESS_PRIVATE or PTHREAD_PROCESS_SHARED.
enum class MutexScope { kPrivate, kShared };

/// True if the thread is blocked as glibc's pthread_mutex_lock() blocks; only then is the mutex worth reading.
[[nodiscard]] bool seems_to_wait_for_mutex(const ThreadSample& thread, MutexScope scope);
/// The owner of the mutex that `thread` waits for, as the mutex records it: the owner's own number. 0: it is no mutex,
/// or no thread has it.
[[nodiscard]] pid_t owner_of_mutex(ProcSource* proc, const ThreadSample& thread, MutexScope scope);
/// The thread whose end `thread` waits for, if it is blocked in pthread_join(), by the number that it has in its own
/// namespace; it may be no thread. 0: it is blocked in some other way.
[[nodiscard]] pid_t joined_thread(ProcSource* proc, const ThreadSample& thread);

}  // namespace mprun
