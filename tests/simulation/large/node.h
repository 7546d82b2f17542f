// Node: one node of a large run. The scheduler and the records of its shard are the real ones; workers and time are a
// model, which works like session.cc, but has little trouble and no oracle. For large.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "cluster/shard.h"
#include "job/spec.h"

namespace mprun::simulation {

struct NodeLoad {
  std::string run_dir;  ///< of the whole run
  Shard shard;
  std::uint64_t tasks = 0;  ///< of the whole run
  bool counted = true;      ///< that number is known beforehand: shards are blocks
  int workers = 64;
  double task_seconds = 1;  ///< on average
  Order order = Order::kInput;
};

/// The results of a node; plain, for pipes.
struct NodeFigures {
  std::uint64_t tasks = 0, retried = 0;
  std::uint64_t events = 0;
  std::array<std::uint64_t, 8> actions{};       ///< counts by kind of Action
  std::uint64_t most_held = 0;                  ///< tasks that the scheduler held at once
  double seconds = 0;                           ///< duration of the run by its own clock
  double processor_seconds = 0;                 ///< used by scheduler, records and model here
  std::uint64_t memory = 0;                     ///< bytes by which the process has grown
  std::uint64_t writes = 0, syncs = 0;          ///< of files, while tasks ran
  std::uint64_t bytes = 0;                      ///< written by those
  std::uint64_t end_reads = 0, end_writes = 0;  ///< to sort the results
};

/// Runs a node to its end; its files are those of a shard that has ended.
[[nodiscard]] Result<NodeFigures> simulate_node(const NodeLoad& load);

}  // namespace mprun::simulation
