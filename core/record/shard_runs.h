// ShardRuns: the run directories of a job's shards, below DIR/shards, each with what its own records say of it. Read by
// `mprun merge` and `mprun submit --wait`; owns copies of summaries, nothing of results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/shard.h"
#include "json/document.h"
#include "json/json.h"

namespace mprun {

// Its implicit move moves a nlohmann value, which clang-tidy cannot see through.
struct ShardRun {  // NOLINT(bugprone-exception-escape)
  struct Place {
    std::string since;  ///< as utc_text() writes it
    std::string node;
  };
  Shard shard;
  std::string path;             ///< DIR/shards/2
  std::string node;             ///< where its last session ran; empty: unknown
  Json spec;                    ///< job.json
  std::optional<Json> summary;  ///< nullopt: it still runs, or was killed
  std::vector<Place> places;    ///< of all sessions
  std::string fault;            ///< why it cannot be joined, human-readable; empty: it has ended with all its tasks

  /// The node at that time; empty: unknown.
  [[nodiscard]] const std::string& node_at(const std::string& utc) const;
  /// "shard 2 of 4 (on n1)".
  [[nodiscard]] std::string name() const;
};

/// All shards of a run, in order; missing ones have a fault too. kUsage errors: there are none, or they belong to
/// different runs.
[[nodiscard]] Result<std::vector<ShardRun>> find_shards(const std::string& run_dir);

}  // namespace mprun
