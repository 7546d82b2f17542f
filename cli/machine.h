// Examines what this machine offers: the interpreter, the adapters' files, features of the kernel. For `mprun doctor`.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <vector>

#include "installation.h"
#include "options.h"
#include "report/doctor_report.h"

namespace mprun {

/// Tries everything, in about the time that the interpreter takes to start.
[[nodiscard]] std::vector<MachineFeature> examine_machine(const CommandLine& line, const Installation& installation);

/// How many CPUs, processes and files and how much memory jobs can have here, and what that means for them.
[[nodiscard]] std::vector<MachineFeature> examine_limits();

/// The descriptors that mprun needs for so many workers, and the workers that so many descriptors suffice for.
[[nodiscard]] std::uint64_t open_files_for(std::uint64_t workers);
[[nodiscard]] std::uint64_t most_workers(rlim_t open_files);

}  // namespace mprun
