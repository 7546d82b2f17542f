// Shard: which part of a job's tasks one of several mpruns runs, each with a run directory of its own. Decided once by
// resolve() and run_job(); plain data, knows no cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mprun {

/// More than any cluster has nodes, and few enough for folders.
inline constexpr std::uint64_t kMostShards = 1'000'000;

struct Shard {
  std::uint64_t index = 0;  ///< from 0
  std::uint64_t count = 1;
};

/// "2/4" is the second of four; nullopt: it is no such text.
[[nodiscard]] std::optional<Shard> parse_shard(std::string_view text);

/// "2/4".
[[nodiscard]] std::string to_string(Shard shard);

/// The name of its folder, below "shards" of the directory of the whole run: "2".
[[nodiscard]] std::string folder_of(Shard shard);

/// The tasks of a shard, by their numbers in the whole job: every `step`th of [begin, end). Where the total is known
/// they are neighbours, blocks that differ in size by one at most; else every count-th one, so that no shard needs to
/// know where the inputs end. Each task of a job is in exactly one shard.
struct ShardTasks {
  std::uint64_t begin = 0;
  std::uint64_t end = UINT64_MAX;
  std::uint64_t step = 1;

  [[nodiscard]] bool has(std::uint64_t task) const {
    return task >= begin && task < end && (step == 1 || (task - begin) % step == 0);
  }
  [[nodiscard]] bool empty() const { return begin >= end; }
  /// How many; nullopt: not known.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
};

/// `total`: of the whole job's tasks.
[[nodiscard]] ShardTasks tasks_of(Shard shard, std::optional<std::uint64_t> total);

/// "task 7", "tasks 450 to 899"; of neighbours, at least one.
[[nodiscard]] std::string tasks_text(const ShardTasks& tasks);

/// "shard 2 of 4: tasks 450 to 899".
[[nodiscard]] std::string describe(Shard shard, const ShardTasks& tasks);

}  // namespace mprun
