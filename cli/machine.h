// Examines what this machine offers: the interpreter, the adapters' files, features of the kernel. For `mprun doctor`.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "report/doctor_report.h"
#include "run/installation.h"

namespace mprun {

/// Tries everything, in about the time that the interpreter takes to start.
[[nodiscard]] std::vector<MachineFeature> examine_machine(const CommandLine& line, const Installation& installation);

/// How many CPUs, processes and files and how much memory jobs can have here, and what that means for them.
[[nodiscard]] std::vector<MachineFeature> examine_limits();

/// The processors, and where the workers of a job would run by default; lines.
[[nodiscard]] std::string examine_processors();

}  // namespace mprun
