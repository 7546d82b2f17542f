// Going on with a run that was cut short: what was recorded of it, and whether it still is what it was made from.
// Used by main (before anything is locked or launched) and by run_job.
#pragma once

#include <string>

#include "base/result.h"
#include "job/resolve.h"
#include "options.h"
#include "record/provenance.h"

namespace mprun {

/// A job as it is to be run, and what its run directory has to remember of it.
struct Plan {
  Resolved resolved;
  Provenance origin;
  std::uint64_t certain = UINT64_MAX;  ///< KeepRule::certain, if it goes on
  bool goes_on = false;                ///< with the run in resolved.spec.output_dir
  bool changed = false;                ///< from what it was made from, and that was accepted
};

/// The job that the command line names: a new one, or with `mprun resume` or --resume one that is there. Errors:
/// those of resolve(), no such run, changes that were not accepted.
[[nodiscard]] Result<Plan> make_plan(const CommandLine& line);

}  // namespace mprun
