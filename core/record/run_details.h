// RunDetails: what a run directory records beyond its RunRecord, for the page of `mprun report` only: the reports of
// hangs, and CPU and memory over time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "record/run_record.h"
#include "record/usage_record.h"

namespace mprun {

/// A hang as recorded in hangs/N.json and hangs/N.txt.
// Its implicit move moves a nlohmann value, which clang-tidy cannot see through.
struct HangFile {    // NOLINT(bugprone-exception-escape)
  Json report;       ///< null if it cannot be read
  std::string text;  ///< empty if it cannot be read
};

struct RunDetails {
  std::vector<HangFile> hangs;  ///< of the first kMostHangs hangs of the run
  std::optional<UsageRecord> usage;

  static constexpr std::size_t kMostHangs = 50;
};

/// What cannot be read is left out.
[[nodiscard]] RunDetails read_details(const RunRecord& run);

}  // namespace mprun
