// merge: joins the run directories of all shards into one, as one machine would have left it: results.jsonl, tensors/,
// joblog.tsv, journal.jsonl, job.json and summary.json. Called by `mprun merge` and by `mprun submit --wait`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "record/summary.h"

namespace mprun {

struct MergedRun {
  /// A line for each shard that is missing or has not ended; if there is any, nothing was written.
  std::vector<std::string> unfinished;
  std::vector<std::string> warnings;
  std::size_t shards = 0;
  TaskCounts counts;
  double seconds = 0;  ///< of the shard that took longest
  int exit_code = 0;   ///< the gravest of all shards
};

/// Joins the shards below `run_dir`, and replaces what an earlier call left there. kUsage errors: there are no shards,
/// or they do not belong together.
[[nodiscard]] Result<MergedRun> merge_shards(const std::string& run_dir);

}  // namespace mprun
