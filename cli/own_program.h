// Short programs that mprun asks something (sbatch, scontrol, squeue): run to their end, their words read. Called by
// cli/ where there is no job.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mprun {

struct ProgramText {
  int exit_code = 0;  ///< 128 + N for one that a signal has ended
  std::string out;    ///< what it wrote to stdout; its stderr is ours
};

/// `argv[0]` is looked for on PATH, and in the folders of daemons. kUsage errors: it is not there.
[[nodiscard]] Result<ProgramText> run_program_for_text(std::vector<std::string> argv);

}  // namespace mprun
