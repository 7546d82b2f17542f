// Which signals a program in Python handles itself. All that is read may be garbage.
#pragma once

#include <optional>
#include <vector>

#include "procfs/process_facts.h"

namespace mprun {

/// Bit N-1: a function in Python runs for signal N, given to signal.signal() or to an event loop's
/// add_signal_handler(). Not those for SIGINT that end what the main thread does: CPython's, asyncio's and trio's.
/// nullopt: there is no Python, or its table of handlers is not found. CPython 3.9 and later.
[[nodiscard]] std::optional<std::uint64_t> signals_handled_in_python(ProcSource* proc, pid_t pid,
                                                                     const std::vector<Mapping>& mappings);

/// Whether such a function frees a lock: the name of the method is all that is looked at.
[[nodiscard]] bool handlers_may_free_locks(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings);

/// True if the program's function for SIGCHLD is that of torch's DataLoaders
/// (torch/utils/data/_utils/signal_handling.py), which raises an error if one of their workers has failed, and does
/// nothing about other children.
[[nodiscard]] bool only_watches_workers_of_torch(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings);

}  // namespace mprun
