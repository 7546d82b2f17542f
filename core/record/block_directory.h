// BlockDirectory: which shard has which block of a job, as the names of empty files below DIR/blocks say it: a folder
// for each share, in it "free.7", "held.7.2" or "done.7.2" for each of its blocks. Used by ClaimedBlocks while a shard
// runs and by merge; owns paths only.
//
// A block changes hands by one rename(2), of which one of several wins, on network file systems too. There is no lock.
// Folders appear whole: they are filled under another name, and a rename onto one that is there fails, as none is
// empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/blocks.h"

namespace mprun {

/// Who has done the blocks of a job.
struct DoneBlocks {
  Cutting cutting;
  std::vector<std::uint64_t> shards;            ///< by share and index, kBlocksPerShare for each share
  std::uint64_t free = 0;                       ///< tasks in blocks that nobody holds
  std::map<std::uint64_t, std::uint64_t> held;  ///< by shard: tasks in blocks that it holds and has not done

  [[nodiscard]] bool by(std::uint64_t shard, std::uint64_t task) const {
    const BlockId block = cutting.block_of(task);
    return shards[block.share * kBlocksPerShare + block.index] == shard;
  }
};

class BlockDirectory {
 public:
  /// Of the whole run in `run_dir`, made where it is not there. kUsage errors: it cannot be made; it is there with
  /// another number of tasks or shards.
  [[nodiscard]] static Result<BlockDirectory> open(const std::string& run_dir, const Cutting& cutting, Shard shard);
  /// That of a run that is there; nullopt: its shards claimed no blocks.
  [[nodiscard]] static Result<std::optional<BlockDirectory>> find(const std::string& run_dir);

  [[nodiscard]] const Cutting& cutting() const { return cutting_; }
  /// The blocks of a share as they are just now, by their indices; none: they have to be made. What others rename
  /// meanwhile may be missing.
  [[nodiscard]] Result<std::vector<BlockName>> list(std::uint64_t share) const;
  /// Makes the blocks of a share, all of them free, unless they are there.
  [[nodiscard]] Result<void> make(std::uint64_t share) const;
  /// Looks at all blocks.
  [[nodiscard]] Result<DoneBlocks> look_at_all() const;
  /// Renames the block; false: somebody else was quicker. `to` names who asks, or nobody. A block that is done is so on
  /// disk when this returns.
  [[nodiscard]] bool rename(std::uint64_t share, const BlockName& from, const BlockName& to) const;
  [[nodiscard]] bool has(std::uint64_t share, const BlockName& name) const;

  /// Replaces the heartbeat of our shard.
  void beat(std::string_view text) const;
  /// That of another one; empty: there is none.
  [[nodiscard]] std::string heartbeat(std::uint64_t shard) const;

 private:
  BlockDirectory(std::string run_dir, const Cutting& cutting, std::uint64_t shard)
      : run_dir_(std::move(run_dir)), cutting_(cutting), shard_(shard) {}
  [[nodiscard]] std::string folder(std::uint64_t share) const;
  [[nodiscard]] std::string heartbeat_path(std::uint64_t shard) const;

  std::string run_dir_;
  Cutting cutting_;
  std::uint64_t shard_ = 0;  ///< ours
};

/// The folder of blocks, in the directory of a whole run.
inline constexpr const char* kBlocksName = "blocks";

}  // namespace mprun
