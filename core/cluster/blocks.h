// Blocks: how the tasks of a job are divided if its shards claim them while they run (`--balance dynamic`), what the
// names of blocks say, and which heartbeats have stopped. Pure: every mprun derives the same division from the numbers
// of tasks and shards. record/block_directory.h has the files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "cluster/shard.h"

namespace mprun {

enum class Balance {
  kStatic,   ///< each shard has tasks of its own
  kDynamic,  ///< shards claim blocks of tasks while they run
};

/// More would mean more files, fewer a longer wait for the last block.
inline constexpr std::uint64_t kBlocksPerShare = 32;

/// Neighbouring tasks: the `index`th block of those that the shard `share` would have without balancing.
struct BlockId {
  std::uint64_t share = 0;
  std::uint64_t index = 0;

  [[nodiscard]] bool operator==(const BlockId& other) const { return share == other.share && index == other.index; }
  [[nodiscard]] bool operator<(const BlockId& other) const {
    return std::pair(share, index) < std::pair(other.share, other.index);
  }
};

/// All blocks of a job.
struct Cutting {
  std::uint64_t tasks = 0;
  std::uint64_t shards = 1;

  /// How many blocks a share has; none is empty.
  [[nodiscard]] std::uint64_t blocks_in(std::uint64_t share) const;
  [[nodiscard]] ShardTasks tasks_in(BlockId block) const;
  /// The block that has a task of the job.
  [[nodiscard]] BlockId block_of(std::uint64_t task) const;
};

enum class BlockState { kFree, kHeld, kDone };

/// What the name of a block's file says: "free.7", "held.7.2", "done.7.2" with the folder of the shard.
struct BlockName {
  BlockState state = BlockState::kFree;
  std::uint64_t index = 0;
  std::uint64_t shard = 0;  ///< that holds it or has done it; unused for free
};
[[nodiscard]] std::string to_string(const BlockName& name);
[[nodiscard]] std::optional<BlockName> parse_block_name(std::string_view text);

/// Heartbeats in the time after which a silent shard counts as dead.
inline constexpr Nanos kBeatsInPatience = 10;

/// A shard's last heartbeat: others need not wait until it counts as silent.
inline constexpr std::string_view kLeft = "left\n";

/// Finds heartbeats that stand still, by the clock of the observer: the clocks of two nodes are never compared.
class Heartbeats {
 public:
  explicit Heartbeats(Nanos patience) : patience_(patience) {}

  /// `text` is the current heartbeat of `shard`. True: it has not changed for the whole of our patience, or is kLeft.
  [[nodiscard]] bool has_stopped(std::uint64_t shard, std::string_view text, Nanos now);
  /// For an observer that looks all the time, before each look: after a pause of half of the patience it was suspended
  /// itself, and measures anew.
  void look(Nanos now);

 private:
  struct Heartbeat {
    std::string text;
    Nanos since = 0;
  };
  Nanos patience_;
  std::map<std::uint64_t, Heartbeat> last_;
  Nanos looked_ = 0;
};

}  // namespace mprun
