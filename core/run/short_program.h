// Short programs that mprun queries (sbatch, scontrol, squeue): it runs them to their end and reads their output.
// Called by cli/ where there is no job.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mprun {

struct ProgramText {
  int exit_code = 0;  ///< 128 + N for one that a signal has ended
  std::string out;    ///< what it wrote to stdout; its stderr is ours
};

/// Looks for `argv[0]` on PATH, and in the folders of daemons. kUsage errors: it does not exist.
[[nodiscard]] Result<ProgramText> run_program_for_text(std::vector<std::string> argv);

}  // namespace mprun
