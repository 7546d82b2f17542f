// mprun watch PID...: watches trees of processes that mprun has not started, each until its first process has ended,
// and reports their hangs or ends them. Called in the supervisor's process.
#pragma once

#include "launch/guard.h"
#include "run/job_request.h"

namespace mprun {

/// Returns mprun's exit code: 0 if all have ended, 124 if one was ended because of a hang, 128+N after signal N.
/// Errors: a process is not there or may not be looked into, and nothing was watched.
[[nodiscard]] Result<int> watch_trees(const JobRequest& request, const Guard& guard);

}  // namespace mprun
