// Which variables of "env" are secrets ("redact" of the spec): their values go to the processes of the job and nowhere
// else. job.json keeps kRedacted in their place, and whoever reads it back takes the values from the environment anew.
// Called by resolve(); owns nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/json_fwd.h"

namespace mprun::job {

/// What stands for a value that is not told.
inline constexpr const char* kRedacted = "***";

/// Whether a variable is one that a pattern of "redact" names: * and ? as in file names, upper case as lower.
[[nodiscard]] bool is_redacted(const std::vector<std::string>& patterns, const std::string& name);

/// Replaces the redacted values in "env" of a merged spec.
void redact_env(const std::vector<std::string>& patterns, Json* merged);

struct Resolving;

/// Gives variables whose value is kRedacted that of mprun's own environment; an error if it has none.
[[nodiscard]] Result<void> restore_redacted(Resolving& job);

}  // namespace mprun::job
