#include "watch/watcher.h"

namespace mprun {
namespace {

constexpr Nanos kLookEvery = 200 * kNanosPerMilli;
// Between samples of a tree that seems to stand still.
constexpr Nanos kSampleEvery = 40 * kNanosPerMilli;

}  // namespace

Watcher::Watcher(ProcSource* proc, Tree tree, AskOutside outside)
    : proc_(proc), tree_(tree), outside_(std::move(outside)) {}

void Watcher::sample_again(Nanos now) {
  sample_ = std::make_unique<Sample>(take_sample(proc_, process_tree(proc_, tree_.root, tree_.with_root)));
  activity_.set_threads(*sample_);
  next_look_ = now + kSampleEvery;
}

void Watcher::go_on(Nanos now) {
  phase_ = Phase::kMoving;
  pending_.reset();
  last_moved_ = now;
  next_look_ = now + kLookEvery;
}

void Watcher::judge_pending() {
  Proof proof;
  proof.sample = std::make_unique<Sample>(*sample_);
  proof.world = std::make_unique<World>(proc_, proof.sample.get(), outside_());
  proof.judgement = judge(*proof.sample, proof.world.get());
  proof.last_moved = last_moved_;
  if (!proof.judgement.stuck.empty()) pending_ = std::move(proof);
}

std::optional<Proof> Watcher::look(Nanos now) {
  next_look_ = now + kLookEvery;
  if (last_moved_ == 0) last_moved_ = now;
  if (phase_ == Phase::kMoving || phase_ == Phase::kStill) {
    const bool moved = activity_.has_moved();
    if (moved) last_moved_ = now;
    if (phase_ == Phase::kStill && !moved) return std::nullopt;
    if (moved && phase_ == Phase::kStill) phase_ = Phase::kMoving;
    if (moved && !activity_.knows_none()) return std::nullopt;
    // Threads that are not known yet were started by some that are, and those have moved.
    sample_again(now);
    phase_ = sample_->threads.empty() ? Phase::kMoving : Phase::kFirst;
    return std::nullopt;
  }
  const auto before = std::move(sample_);
  sample_again(now);
  if (!stood_still(*before, *sample_)) {
    go_on(now);
    return std::nullopt;
  }
  if (phase_ == Phase::kFirst) {
    judge_pending();
    phase_ = pending_ ? Phase::kSecond : Phase::kStill;
    return std::nullopt;
  }
  phase_ = Phase::kStill;
  auto proof = std::exchange(pending_, std::nullopt);
  if (proof->judgement.stuck == told_) return std::nullopt;
  told_ = proof->judgement.stuck;
  return proof;
}

}  // namespace mprun
