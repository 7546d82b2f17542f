// Tells processes apart that do not share memory, where kcmp(2) is forbidden, as in containers.
#pragma once

#include <sys/types.h>

namespace mprun {

/// Whether two threads certainly have separate address spaces; false also means: not known. glibc keeps each thread's
/// number beside its list of robust mutexes, at one address for its whole life: memory that holds another number there,
/// or nothing, is not the memory of that thread.
[[nodiscard]] bool have_separate_memory(pid_t one, pid_t other);

}  // namespace mprun
