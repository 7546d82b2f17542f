// Runs a job: opens what it needs, lets the supervisor work, closes the records. Called in the supervisor's process.
#pragma once

#include "launch/guard.h"
#include "run/plan.h"

namespace mprun {

/// Returns mprun's exit code. Errors: nothing was launched.
[[nodiscard]] Result<int> run_job(const JobRequest& request, Plan plan, const Guard& guard);

}  // namespace mprun
