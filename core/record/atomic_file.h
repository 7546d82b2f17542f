// Whole small files, there entirely or not at all: job.json, summary.json and hang reports.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/spec.h"

namespace mprun {

/// Writes `text` to PATH.tmp and renames it to `path`; on failure neither is left behind.
[[nodiscard]] Result<void> write_atomically(const std::string& path, std::string_view text);

/// The document indented by two, with a final newline; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string indented(const Json& document);

}  // namespace mprun
