// The processes that a Python program has started by multiprocessing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>

#include "procfs/proc_source.h"
#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// True for multiprocessing's forkserver, which forks the children of another process: the one that has started it. By
/// its command; its children, which have the same, are none.
[[nodiscard]] bool is_forkserver(ProcSource* proc, pid_t pid);

/// From its memory, which may hold garbage: the numbers that the multiprocessing.Process objects in lists of an object
/// keep of their processes: pids, and some more, such as exit codes. Not of those that the only list of booleans of the
/// same length has False for: so a DataLoader marks workers that have finished (_workers_status). nullopt: there are
/// none, or some cannot be read.
[[nodiscard]] std::optional<std::set<pid_t>> numbers_of_processes(std::uint64_t object, const PythonLayout& layout,
                                                                  ProcessMemory* memory);

}  // namespace mprun
