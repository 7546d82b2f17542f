// From a request to a JobSpec: reads the layers of the spec and finds out what the machine offers. Prints the
// resolver's warnings.
#pragma once

#include <string>

#include "base/result.h"
#include "job/resolve.h"
#include "run/job_request.h"

namespace mprun {

/// Where mprun was started.
[[nodiscard]] std::string current_directory();

/// Reads all layers of a job's spec and resolves them.
[[nodiscard]] Result<Resolved> resolve_request(const JobRequest& request);

/// Resolves the job.json of a run directory, which has all fields, together with what the request sets.
[[nodiscard]] Result<Resolved> resolve_recorded(Document recorded, const JobRequest& request);

}  // namespace mprun
