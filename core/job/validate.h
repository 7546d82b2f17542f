// Validates one layer against the job schema: valijson gives the verdict and the places, the messages are ours. Called
// by resolve(), once for each layer; owns nothing.
#pragma once

#include "base/result.h"
#include "json/document.h"
#include "json/json_fwd.h"

namespace mprun::job {

/// Checks a document against schema_json(). The kUsage error has up to five findings in the order of the text.
[[nodiscard]] Result<void> validate(const Document& document);

}  // namespace mprun::job
