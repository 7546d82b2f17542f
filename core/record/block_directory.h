// BlockDirectory: which shard has which block of a job. Names of empty files below DIR/blocks record it: a folder for
// each share, and in it "free.7", "held.7.2" or "done.7.2" for each of its blocks. Used by ClaimedBlocks while a shard
// runs, and by merge; owns paths only.
//
// A block changes hands by one rename(2). Of several at once only one succeeds, on network file systems too. There is
// no lock. A folder appears complete: it is filled under another name, then renamed. A rename onto an existing folder
// fails, because no folder is empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/blocks.h"

namespace mprun {

/// Which shards have done the blocks of a job.
struct DoneBlocks {
  Cutting cutting;
  std::vector<std::uint64_t> shards;            ///< by share and index, kBlocksPerShare for each share
  std::uint64_t free = 0;                       ///< tasks in blocks that no shard holds
  std::map<std::uint64_t, std::uint64_t> held;  ///< by shard: tasks in blocks that it holds and has not done

  [[nodiscard]] bool by(std::uint64_t shard, std::uint64_t task) const {
    const BlockId block = cutting.block_of(task);
    return shards[block.share * kBlocksPerShare + block.index] == shard;
  }
};

class BlockDirectory {
 public:
  /// Opens the directory of the whole run in `run_dir`, and makes it if it is missing. kUsage errors: it cannot be
  /// made; it exists with another number of tasks or shards.
  [[nodiscard]] static Result<BlockDirectory> open(const std::string& run_dir, const Cutting& cutting, Shard shard);
  /// Opens that of an existing run; nullopt: its shards claimed no blocks.
  [[nodiscard]] static Result<std::optional<BlockDirectory>> find(const std::string& run_dir);

  [[nodiscard]] const Cutting& cutting() const { return cutting_; }
  /// The current blocks of a share, by index; empty: they must still be made. Blocks that others rename meanwhile may
  /// be missing.
  [[nodiscard]] Result<std::vector<BlockName>> list(std::uint64_t share) const;
  /// Makes the blocks of a share, all of them free, unless they exist.
  [[nodiscard]] Result<void> make(std::uint64_t share) const;
  /// Looks at all blocks.
  [[nodiscard]] Result<DoneBlocks> look_at_all() const;
  /// Renames the block; false: another shard was quicker. `to` names our shard, or none. If `to` is done, that is on
  /// disk when this returns.
  [[nodiscard]] bool rename(std::uint64_t share, const BlockName& from, const BlockName& to) const;
  [[nodiscard]] bool has(std::uint64_t share, const BlockName& name) const;

  /// Replaces the heartbeat of our shard.
  void beat(std::string_view text) const;
  /// The heartbeat of another shard; empty: there is none.
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
