#include "watch/watcher.h"

#include <algorithm>

namespace mprun {
namespace {

constexpr Nanos kLookEvery = 200 * kNanosPerMilli;
// Between samples of a tree that seems to stand still, and of one where only a part does.
constexpr Nanos kSampleEvery = 40 * kNanosPerMilli;
constexpr Nanos kPartSampleEvery = 250 * kNanosPerMilli;
// How long a process must rest while others run, before it is worth a judgement; and between such judgements.
constexpr Nanos kRest = kNanosPerSecond;
constexpr Nanos kPartEvery = 2 * kNanosPerSecond;

}  // namespace

Watcher::Watcher(ProcSource* proc, Tree tree, AskOutside outside)
    : proc_(proc), tree_(tree), outside_(std::move(outside)) {}

void Watcher::sample_again(Nanos now) {
  sample_ = std::make_unique<Sample>(take_sample(proc_, process_tree(proc_, tree_.root, tree_.with_root)));
  activity_.set_threads(*sample_, now);
}

std::optional<Proof> Watcher::judge_part(const Sample& before) {
  auto part = still_part(before, *sample_);
  if (!part) return std::nullopt;
  Proof proof;
  proof.sample = std::make_unique<Sample>(std::move(*part));
  proof.world = std::make_unique<World>(proc_, proof.sample.get(), outside_());
  proof.judgement = judge(*proof.sample, proof.world.get());
  proof.last_moved = last_moved_;
  return proof;
}

// Starts taking samples if it is worth it: when nobody moves, or somebody has rested for long while others do.
void Watcher::wait_for_rest(Nanos now) {
  const bool look_at_all = now - last_part_ >= kRest;
  const bool moved = activity_.has_moved(now, look_at_all);
  if (moved) last_moved_ = now;
  const bool nobody_moves = !moved && !activity_.knows_none();
  if (nobody_moves && judged_still_) return;
  judged_still_ = false;
  bool part = false;
  if (moved && look_at_all && now - last_part_ >= kPartEvery) {
    std::set<pid_t> resting = activity_.resting_since(now - kRest);
    part = !std::includes(judged_resting_.begin(), judged_resting_.end(), resting.begin(), resting.end());
    judged_resting_ = std::move(resting);
    last_part_ = now;
  }
  // Threads that are not known yet were started by some that are, and those have moved.
  if (moved && !part && !activity_.knows_none() && now - last_sample_ < kPartEvery) return;
  sample_again(now);
  last_sample_ = now;
  if (sample_->threads.empty() || (moved && !part)) return;
  of_part_ = part;
  phase_ = Phase::kFirst;
  next_look_ = now + (part ? kPartSampleEvery : kSampleEvery);
}

std::optional<Proof> Watcher::look(Nanos now) {
  next_look_ = now + kLookEvery;
  if (last_moved_ == 0) last_moved_ = now;
  if (phase_ == Phase::kResting) {
    wait_for_rest(now);
    return std::nullopt;
  }
  const auto before = std::move(sample_);
  sample_again(now);
  if (!of_part_ && !stood_still(*before, *sample_)) {
    phase_ = Phase::kResting;
    pending_.reset();
    last_moved_ = now;
    return std::nullopt;
  }
  auto proof = judge_part(*before);
  const bool is_first = phase_ == Phase::kFirst;
  phase_ = Phase::kResting;
  const auto agreed = std::exchange(pending_, std::nullopt);
  judged_still_ = !of_part_;
  if (!proof || proof->judgement.stuck.empty()) return std::nullopt;
  if (is_first) {
    pending_ = std::move(proof);
    phase_ = Phase::kSecond;
    next_look_ = now + (of_part_ ? kPartSampleEvery : kSampleEvery);
    return std::nullopt;
  }
  const Judgement& one = agreed->judgement;
  const Judgement& other = proof->judgement;
  if (one.stuck != other.stuck || one.gil_switches != other.gil_switches || other.stuck == told_) return std::nullopt;
  told_ = other.stuck;
  return proof;
}

}  // namespace mprun
