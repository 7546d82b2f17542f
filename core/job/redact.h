// Which variables of "env" are secrets ("redact" of the spec): their values go to the processes of the job and nowhere
// else. job.json keeps kRedacted in their place; a later mprun takes the values from its environment again. Called by
// resolve(); owns nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "json/json_fwd.h"

namespace mprun::job {

/// Stands for a secret value.
inline constexpr const char* kRedacted = "***";

/// Whether a pattern of "redact" matches a variable: * and ? as in file names, ignoring case.
[[nodiscard]] bool is_redacted(const std::vector<std::string>& patterns, const std::string& name);

/// Replaces the redacted values in "env" of a merged spec.
void redact_env(const std::vector<std::string>& patterns, Json* merged);

struct Resolving;

/// Gives variables whose value is kRedacted the value from mprun's own environment; an error if it has none.
[[nodiscard]] Result<void> restore_redacted(Resolving& job);

}  // namespace mprun::job
