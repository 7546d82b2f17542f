// ClaimedBlocks: the tasks of one shard where shards share them while they run (`--balance dynamic`): claims a block
// when the supervisor asks for a task and none is left, says of each whose tasks have all ended that it is done, and
// takes over those of shards whose heartbeats have stopped. Used by mprun's one thread; owns the open inputs and a few
// words a block.
//
// It believes in nothing but its own renames: what a listing shows may be late, and is only where to try next. A block
// that another shard has taken away is lost: what this one has of it does not count, merge sees to that.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/block_directory.h"
#include "record/row_set.h"
#include "supervise/shared_tasks.h"

namespace mprun {

class ClaimedBlocks final : public SharedTasks, public Sink {
 public:
  struct Options {
    Shard shard;
    Nanos patience = 60 * kNanosPerSecond;  ///< a heartbeat that stands still for so long has stopped
    const RowSet* ended = nullptr;          ///< tasks that this shard has ended in earlier sessions
    bool goes_on = false;                   ///< there was one
    std::function<Result<std::unique_ptr<InputSource>>()> open_inputs;  ///< of the whole job, from the first on
    std::function<bool()> make_durable;  ///< has all results so far on disk when it returns; false: they are not
    Nanos session = 0;                   ///< differs from one session of a shard to the next
  };
  [[nodiscard]] static Result<std::unique_ptr<ClaimedBlocks>> open(BlockDirectory directory, Options options);

  [[nodiscard]] std::optional<TaskId> next(Nanos now) override;
  InputSource::Pull pull(std::string* out) override;
  [[nodiscard]] bool all_done() const override { return shares_done_ == share_done_.size(); }
  void tick(Nanos now) override;
  [[nodiscard]] std::string waits_for() const override;
  /// Counts the tasks that end.
  void on_event(const JobEvent& event) override;

  /// This session ends: blocks that it has begun wait for the next one, or for others who need not wait for us; the
  /// rest is free again.
  void leave();
  /// Why blocks can be claimed no more.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// What a person should know since the last call: blocks taken over, blocks lost.
  [[nodiscard]] std::vector<std::string> take_warnings();

 private:
  enum class Hold { kHeld, kLost, kDone };
  struct Claim {
    Hold hold = Hold::kHeld;
    ShardTasks tasks;
    TaskId next = 0;         ///< the first that was not given out
    std::uint64_t left = 0;  ///< that have not ended
  };
  struct Look {
    Nanos at = 0;
    bool stopped = false;
  };
  ClaimedBlocks(BlockDirectory directory, Options options);

  [[nodiscard]] Result<void> find_own();
  [[nodiscard]] bool find_block(Nanos now);
  [[nodiscard]] bool visit(std::uint64_t share, Nanos now, std::set<std::uint64_t>* holders);
  [[nodiscard]] bool claim(std::uint64_t share, const BlockName& seen, Nanos now);
  [[nodiscard]] bool has_stopped(std::uint64_t shard, Nanos now);
  void take(BlockId block);
  void finish_blocks();
  void look_after_own();
  void lose(BlockId block);
  [[nodiscard]] BlockName own(BlockState state, BlockId block) const;
  [[nodiscard]] std::string words(BlockId block) const;

  BlockDirectory directory_;
  Options options_;
  Heartbeats heartbeats_;
  Nanos pause_;  ///< between two looks for a block while none is to be had
  std::map<BlockId, Claim> claims_;
  std::deque<BlockId> queue_;      ///< with tasks to be given out
  std::vector<BlockId> finished_;  ///< all their tasks have ended, and the directory does not know yet
  std::vector<bool> share_done_;
  std::size_t shares_done_ = 0;
  std::uint64_t cursor_;  ///< the share that is looked at next
  std::map<std::uint64_t, Look> looks_;
  std::set<std::uint64_t> holders_;  ///< shards that hold blocks, as the last look has shown
  Nanos next_look_ = 0, next_beat_ = 0;
  std::uint64_t beats_ = 0;
  std::unique_ptr<InputSource> inputs_;
  TaskId next_input_ = 0;  ///< whose input inputs_ gives next
  std::optional<Error> failure_;
  std::vector<std::string> warnings_;
};

}  // namespace mprun
