// What this machine offers to mprun: the interpreter, the adapters' files, features of the kernel. For `mprun doctor`.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <vector>

#include "installation.h"
#include "options.h"
#include "report/doctor_report.h"

namespace mprun {

/// Tries everything out, in about the time that the interpreter takes to start.
[[nodiscard]] std::vector<MachineFeature> examine_machine(const CommandLine& line, const Installation& installation);

/// How much of CPUs, memory, processes and files jobs can have here, and what that means for them.
[[nodiscard]] std::vector<MachineFeature> examine_limits();

/// The descriptors that mprun needs with so many workers, and the workers that so many descriptors are enough for.
[[nodiscard]] std::uint64_t open_files_for(std::uint64_t workers);
[[nodiscard]] std::uint64_t most_workers(rlim_t open_files);

}  // namespace mprun
