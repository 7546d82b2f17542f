// What this machine offers to mprun: the interpreter, the adapters' files, features of the kernel. For `mprun doctor`.
#pragma once

#include <vector>

#include "installation.h"
#include "options.h"
#include "report/doctor_report.h"

namespace mprun {

/// Tries everything out, in about the time that the interpreter takes to start.
[[nodiscard]] std::vector<MachineFeature> examine_machine(const CommandLine& line, const Installation& installation);

}  // namespace mprun
