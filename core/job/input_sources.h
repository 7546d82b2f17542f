// The functions that open each kind of inputs, one file each. Private to core/job; open_inputs() calls them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/inputs.h"

namespace mprun::job {

using SourceResult = Result<std::unique_ptr<InputSource>>;

[[nodiscard]] SourceResult open_lines(const LinesInput& input);
[[nodiscard]] SourceResult open_jsonl(const JsonlInput& input);
[[nodiscard]] SourceResult open_glob(const GlobInput& input);
[[nodiscard]] SourceResult open_arrays(const ArraysInput& input);

/// The file names that match a pattern, sorted by their bytes.
[[nodiscard]] Result<std::vector<std::string>> match_files(const std::string& pattern);

}  // namespace mprun::job
