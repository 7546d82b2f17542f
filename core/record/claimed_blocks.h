// ClaimedBlocks: the tasks of one shard where shards share them while they run (`--balance dynamic`). It claims a block
// when the supervisor asks for a task and none is left, marks a block as done when all its tasks have ended, and takes
// over the blocks of shards whose heartbeats have stopped. Used by mprun's one thread; owns the open inputs and a few
// words a block.
//
// It relies only on its own renames: a listing may be out of date, and only suggests where to try next. A block that
// another shard has taken away is lost: what this shard has of it does not count, and merge leaves it out.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "events/shared_tasks.h"
#include "record/block_directory.h"
#include "record/row_set.h"

namespace mprun {

class ClaimedBlocks final : public SharedTasks, public Sink {
 public:
  struct Options {
    Shard shard;
    Nanos patience = 60 * kNanosPerSecond;  ///< a heartbeat that has not changed for so long has stopped
    const RowSet* ended = nullptr;          ///< tasks that this shard has ended in earlier sessions
    bool goes_on = false;                   ///< there was an earlier session
    std::function<Result<std::unique_ptr<InputSource>>()> open_inputs;  ///< of the whole job, from the first input on
    std::function<bool()> make_durable;  ///< brings all results so far to disk; false: that failed
    Nanos session = 0;                   ///< differs from one session of a shard to the next
    Log* log = nullptr;                  ///< nullptr: there is none
  };
  [[nodiscard]] static Result<std::unique_ptr<ClaimedBlocks>> open(BlockDirectory directory, Options options);

  [[nodiscard]] std::optional<TaskId> next(Nanos now) override;
  InputSource::Pull pull(std::string* out) override;
  [[nodiscard]] bool all_done() const override { return shares_done_ == share_done_.size(); }
  void tick(Nanos now) override;
  [[nodiscard]] std::string waits_for() const override;
  /// Counts the tasks that end.
  void on_event(const JobEvent& event) override;

  /// Ends this session. Blocks that it has begun stay for the next session, or for other shards, which need not wait
  /// for us; the rest becomes free again.
  void leave();
  /// Why no more blocks can be claimed.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// Warnings since the last call: blocks taken over, blocks lost.
  [[nodiscard]] std::vector<std::string> take_warnings();

 private:
  enum class Hold { kHeld, kLost, kDone };
  struct Claim {
    Hold hold = Hold::kHeld;
    ShardTasks tasks;
    TaskId next = 0;         ///< the first task that was not given out
    std::uint64_t left = 0;  ///< tasks that have not ended
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
  void log(const char* what, BlockId block) const;
  [[nodiscard]] BlockName own(BlockState state, BlockId block) const;
  [[nodiscard]] std::string words(BlockId block) const;

  BlockDirectory directory_;
  Options options_;
  Heartbeats heartbeats_;
  Nanos pause_;  ///< between two searches for a block while there is none
  std::map<BlockId, Claim> claims_;
  std::deque<BlockId> queue_;      ///< blocks with tasks to give out
  std::vector<BlockId> finished_;  ///< all their tasks have ended, but the directory does not say so yet
  std::vector<bool> share_done_;
  std::size_t shares_done_ = 0;
  std::uint64_t cursor_;  ///< the next share to visit
  std::map<std::uint64_t, Look> looks_;
  std::set<std::uint64_t> holders_;  ///< shards that held blocks at the last search
  Nanos next_look_ = 0, next_beat_ = 0;
  std::uint64_t beats_ = 0;
  std::unique_ptr<InputSource> inputs_;
  TaskId next_input_ = 0;  ///< the task whose input inputs_ gives next
  std::optional<Error> failure_;
  std::vector<std::string> warnings_;
};

}  // namespace mprun
