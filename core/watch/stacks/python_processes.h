// The processes that an object of CPython has started, from the memory of a watched process. All it reads may be
// garbage.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>

#include "procfs/process_memory.h"
#include "watch/stacks/python_layout.h"

namespace mprun {

/// The numbers that the multiprocessing.Process objects in lists of an object keep of their processes: pids, and some
/// more, such as exit codes. Not of those that the only list of booleans of the same length has False for: so a
/// DataLoader marks workers that have finished (_workers_status). nullopt: there are none, or some cannot be read.
[[nodiscard]] std::optional<std::set<pid_t>> numbers_of_processes(std::uint64_t object, const PythonLayout& layout,
                                                                  ProcessMemory* memory);

}  // namespace mprun
