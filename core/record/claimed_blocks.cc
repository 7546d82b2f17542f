#include "record/claimed_blocks.h"

#include <algorithm>
#include <utility>

namespace mprun {
namespace {

// Time between two searches for a block. It grows with the shards, or those that wait would load the file system.
constexpr Nanos kLook = 500 * kNanosPerMilli, kLookPerShard = 5 * kNanosPerMilli;
// Shares that one search visits without finding a block.
constexpr int kMostVisits = 8;

}  // namespace

ClaimedBlocks::ClaimedBlocks(BlockDirectory directory, Options options)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      heartbeats_(options_.patience),
      pause_(std::min(options_.patience / kBeatsInPatience,
                      kLook + kLookPerShard * static_cast<Nanos>(options_.shard.count))),
      share_done_(options_.shard.count),
      cursor_(options_.shard.index) {}

Result<std::unique_ptr<ClaimedBlocks>> ClaimedBlocks::open(BlockDirectory directory, Options options) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<ClaimedBlocks> blocks(new ClaimedBlocks(std::move(directory), std::move(options)));
  blocks->tick(monotonic_now());  // other shards must see us alive before we hold anything
  if (blocks->options_.goes_on) {
    if (auto found = blocks->find_own(); !found) return found.error();
  }
  for (std::uint64_t share = 0; share < blocks->share_done_.size(); ++share) {
    if (blocks->directory_.cutting().blocks_in(share) > 0) continue;
    blocks->share_done_[share] = true;
    ++blocks->shares_done_;
  }
  return blocks;
}

// Takes back what an earlier session held, and what it had done if results are missing since or failures are retried.
Result<void> ClaimedBlocks::find_own() {
  for (std::uint64_t share = 0; share < share_done_.size(); ++share) {
    if (directory_.cutting().blocks_in(share) == 0) continue;
    const auto blocks = directory_.list(share);
    if (!blocks) return blocks.error();
    for (const BlockName& name : *blocks) {
      if (name.state == BlockState::kFree || name.shard != options_.shard.index) continue;
      const BlockId block{share, name.index};
      const ShardTasks tasks = directory_.cutting().tasks_in(block);
      const bool whole = options_.ended->has_all(tasks.begin, tasks.end);
      if (name.state == BlockState::kDone &&
          (whole || !directory_.rename(share, name, own(BlockState::kHeld, block)))) {
        continue;
      }
      take(block);
    }
  }
  return {};
}

// --- tasks ---

std::optional<TaskId> ClaimedBlocks::next(Nanos now) {
  do {
    for (; !queue_.empty(); queue_.pop_front()) {
      Claim& claim = claims_.at(queue_.front());
      while (claim.next < claim.tasks.end && options_.ended->has(claim.next)) ++claim.next;
      if (claim.hold == Hold::kHeld && claim.next < claim.tasks.end) return claim.next;
    }
  } while (find_block(now));
  return std::nullopt;
}

InputSource::Pull ClaimedBlocks::pull(std::string* out) {
  const TaskId task = claims_.at(queue_.front()).next++;
  if (!inputs_ || next_input_ > task) {
    auto opened = options_.open_inputs();
    if (!opened) {
      *out += opened.error().message;
      return InputSource::Pull::kBad;
    }
    inputs_ = std::move(*opened);
    next_input_ = 0;
  }
  inputs_->skip(task - next_input_);
  next_input_ = task + 1;
  const InputSource::Pull pulled = inputs_->pull(out);
  if (pulled == InputSource::Pull::kItem || pulled == InputSource::Pull::kBad) return pulled;
  *out += "the inputs have become fewer since this shard began";
  return InputSource::Pull::kBad;
}

void ClaimedBlocks::on_event(const JobEvent& event) {
  const auto* ended = std::get_if<TaskEnded>(&event);
  if (ended == nullptr || ended->status == TaskStatus::kCancelled) return;
  const BlockId block = directory_.cutting().block_of(ended->task);
  Claim& claim = claims_.at(block);
  if (--claim.left == 0 && claim.hold == Hold::kHeld) finished_.push_back(block);
}

// --- blocks ---

bool ClaimedBlocks::find_block(Nanos now) {
  if (failure_ || now < next_look_) return false;
  std::set<std::uint64_t> holders;
  int visits = 0;
  for (std::size_t n = 0; n < share_done_.size() && visits < kMostVisits; ++n) {
    if (!share_done_[cursor_]) {
      if (visit(cursor_, now, &holders)) return true;
      if (failure_) return false;
      if (!share_done_[cursor_]) ++visits;
    }
    cursor_ = (cursor_ + 1) % share_done_.size();
  }
  holders_ = std::move(holders);
  next_look_ = now + pause_;
  return false;
}

// True: this shard now holds a block of the share.
bool ClaimedBlocks::visit(std::uint64_t share, Nanos now, std::set<std::uint64_t>* holders) {
  auto blocks = directory_.list(share);
  if (blocks && blocks->empty()) {
    auto made = directory_.make(share);
    blocks = made ? directory_.list(share) : Result<std::vector<BlockName>>(made.error());
  }
  if (!blocks) {
    failure_ = blocks.error();
    return false;
  }
  std::uint64_t done = 0;
  for (const BlockName& name : *blocks) {
    if (name.state == BlockState::kDone) ++done;
    if (name.state == BlockState::kHeld && name.shard != options_.shard.index) holders->insert(name.shard);
  }
  if (done == directory_.cutting().blocks_in(share)) {
    share_done_[share] = true;
    ++shares_done_;
    return false;
  }
  return std::any_of(blocks->begin(), blocks->end(), [&](const BlockName& name) { return claim(share, name, now); });
}

// Claims a free block, one of a silent shard, or one of ours that we do not know of as its rename was answered wrongly.
bool ClaimedBlocks::claim(std::uint64_t share, const BlockName& seen, Nanos now) {
  const BlockId block{share, seen.index};
  if (seen.state == BlockState::kDone) return false;
  if (seen.state == BlockState::kHeld && seen.shard == options_.shard.index) {
    const auto known = claims_.find(block);
    if (known != claims_.end() && known->second.hold == Hold::kHeld) return false;
  } else {
    if (seen.state == BlockState::kHeld && !has_stopped(seen.shard, now)) return false;
    if (!directory_.rename(share, seen, own(BlockState::kHeld, block))) return false;
    if (seen.state == BlockState::kHeld) {
      warnings_.push_back("took over " + words(block) + " of shard " + folder_of({seen.shard, options_.shard.count}) +
                          ", whose heartbeat has stopped");
    }
  }
  log("claimed ", block);
  take(block);
  return true;
}

bool ClaimedBlocks::has_stopped(std::uint64_t shard, Nanos now) {
  const auto [look, first] = looks_.try_emplace(shard);
  if (first || now - look->second.at >= pause_) {
    look->second = {now, heartbeats_.has_stopped(shard, directory_.heartbeat(shard), now)};
  }
  return look->second.stopped;
}

void ClaimedBlocks::take(BlockId block) {
  const auto [at, first] = claims_.try_emplace(block);
  Claim& claim = at->second;
  claim.hold = Hold::kHeld;
  if (first) {
    claim.tasks = directory_.cutting().tasks_in(block);
    claim.next = claim.tasks.begin;
    for (TaskId task = claim.tasks.begin; task < claim.tasks.end; ++task) {
      if (!options_.ended->has(task)) ++claim.left;
    }
  }
  if (claim.next < claim.tasks.end) queue_.push_back(block);
  if (claim.left == 0) finished_.push_back(block);
}

void ClaimedBlocks::tick(Nanos now) {
  finish_blocks();
  if (now < next_beat_) return;
  next_beat_ = now + options_.patience / kBeatsInPatience;
  directory_.beat(std::to_string(options_.session) + " " + std::to_string(++beats_) + "\n");
  look_after_own();
}

// A block is done only when its results are on disk: no shard runs it again.
void ClaimedBlocks::finish_blocks() {
  if (finished_.empty() || !options_.make_durable()) return;
  for (const BlockId block : std::exchange(finished_, {})) {
    if (directory_.rename(block.share, own(BlockState::kHeld, block), own(BlockState::kDone, block))) {
      claims_.at(block).hold = Hold::kDone;
      log("has done ", block);
    } else {
      lose(block);
    }
  }
  next_look_ = 0;
}

// Stops giving out tasks of blocks that another shard has taken.
void ClaimedBlocks::look_after_own() {
  for (const auto& [block, claim] : claims_) {
    if (claim.hold == Hold::kHeld && !directory_.has(block.share, own(BlockState::kHeld, block))) lose(block);
  }
}

void ClaimedBlocks::lose(BlockId block) {
  claims_.at(block).hold = Hold::kLost;
  warnings_.push_back("another shard has taken over " + words(block) +
                      ", as this one seemed to be dead: what this one has of them does not count");
}

void ClaimedBlocks::leave() {
  finish_blocks();
  for (auto& [block, claim] : claims_) {
    if (claim.hold != Hold::kHeld || claim.left < claim.tasks.size()) continue;
    if (directory_.rename(block.share, own(BlockState::kHeld, block), BlockName{BlockState::kFree, block.index, 0})) {
      claim.hold = Hold::kLost;
      log("gave back ", block);
    }
  }
  directory_.beat(kLeft);
}

// --- words ---

BlockName ClaimedBlocks::own(BlockState state, BlockId block) const {
  return {state, block.index, options_.shard.index};
}

void ClaimedBlocks::log(const char* what, BlockId block) const {
  if (!takes(options_.log, LogComponent::kCluster, LogLevel::kDebug)) return;
  options_.log->write(LogComponent::kCluster, LogLevel::kDebug, what + words(block));
}

std::string ClaimedBlocks::words(BlockId block) const { return tasks_text(directory_.cutting().tasks_in(block)); }

std::string ClaimedBlocks::waits_for() const {
  constexpr std::size_t kMostNamed = 3;
  if (holders_.empty()) return "";
  std::string text = holders_.size() == 1 ? "blocks of shard " : "blocks of shards ";
  std::size_t named = 0;
  for (const std::uint64_t shard : holders_) {
    if (named == kMostNamed) return text + " and others";
    text += (named++ == 0 ? "" : ", ") + folder_of({shard, options_.shard.count});
  }
  return text;
}

std::vector<std::string> ClaimedBlocks::take_warnings() { return std::exchange(warnings_, {}); }

}  // namespace mprun
