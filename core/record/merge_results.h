// merge_results: the results of all shards as one results.jsonl in the order of tasks. Used by merge.cc; holds one line
// of each shard that overlaps with others, and 16 bytes a task only of a shard whose results are in another order.
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
  std::uint64_t repeated = 0;            ///< results of tasks that another shard has too; they are left out
  std::optional<std::uint64_t> missing;  ///< the first task without a result
};

/// Writes each line to `out`, with the numbers of workers raised by those of the shards before (`first_workers`).
/// `done`: whose results of a task count, where shards have claimed blocks of them; nullptr: all do.
/// `take` is told each line that is written, and of which shard; an error of it ends all.
[[nodiscard]] Result<MergedResults> merge_results(
    const std::vector<ShardRun>& shards, const std::vector<int>& first_workers, const DoneBlocks* done, AppendFile* out,
    const std::function<Result<void>(std::size_t shard, std::string_view text, const ResultLine& line)>& take);

}  // namespace mprun
