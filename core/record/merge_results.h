// merge_results: joins the results of all shards into one results.jsonl in the order of tasks. Used by merge.cc; holds
// one line of each shard that overlaps with others, and 16 bytes a task only of a shard whose results are in another
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/append_file.h"
#include "record/block_directory.h"
#include "record/result_line.h"
#include "record/shard_runs.h"

namespace mprun {

struct MergedResults {
  std::uint64_t ok = 0, failed = 0;
  std::uint64_t repeated = 0;            ///< results of tasks that another shard has too; left out
  std::optional<std::uint64_t> missing;  ///< the first task without a result
};

/// Writes each line to `out`, with worker numbers raised by those of the shards before (`first_workers`). `done`: whose
/// result of a task counts, if shards claimed blocks; nullptr: all count. `take` is called with the shard of each line
/// that is written; an error from it ends the merge.
[[nodiscard]] Result<MergedResults> merge_results(
    const std::vector<ShardRun>& shards, const std::vector<int>& first_workers, const DoneBlocks* done, AppendFile* out,
    const std::function<Result<void>(std::size_t shard, std::string_view text, const ResultLine& line)>& take);

}  // namespace mprun
