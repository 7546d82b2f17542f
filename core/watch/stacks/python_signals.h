// What CPython does when SIGINT comes: as a rule it raises KeyboardInterrupt. All that is read may be garbage.
#pragma once

#include "procfs/process_facts.h"

namespace mprun {

/// True for a program that has a handler of its own for SIGINT, by signal.signal() or an event loop's
/// add_signal_handler(). False for those that end what the main thread does, CPython's, asyncio's and trio's; also if
/// there is no Python, or its table of handlers is not found. CPython 3.9 and later.
[[nodiscard]] bool handles_interrupt_itself(ProcSource* proc, pid_t pid, const std::vector<Mapping>& mappings);

}  // namespace mprun
