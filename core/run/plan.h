// The plan of a job, made before anything is locked or launched. For a run that was interrupted: what was recorded of
// it, and whether that still matches what it was made from.
#pragma once

#include <string>

#include "base/result.h"
#include "job/resolve.h"
#include "record/provenance.h"
#include "run/job_request.h"

namespace mprun {

/// A job to run, and what its run directory must record about it.
struct Plan {
  Resolved resolved;
  Provenance origin;
  std::uint64_t certain = UINT64_MAX;  ///< KeepRule::certain, if it continues a run
  bool goes_on = false;                ///< continues the run in resolved.spec.output_dir
  bool changed = false;                ///< differs from what it was made from, and that was accepted
};

/// The job that a request names: a new one, or with `mprun resume` or --resume an existing one. Errors: those of
/// resolve(), no such run, changes that were not accepted.
[[nodiscard]] Result<Plan> make_plan(const JobRequest& request);

}  // namespace mprun
