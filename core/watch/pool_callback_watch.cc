#include "watch/pool_callback_watch.h"

#include <algorithm>
#include <utility>

#include "watch/stalls/lost_result.h"

namespace mprun {

PoolCallbackWatch::PoolCallbackWatch(const WatchedTree* tree)
    : tree_(tree), suspects_([this](pid_t pid) { return judge(pid).has_value(); }) {}

// Whether the process is stuck but for the threads that keep the workers of its pools. nullopt: no.
std::optional<Proof> PoolCallbackWatch::judge(pid_t pid) {
  std::set<pid_t> keepers = keepers_beside_callback(stack_reader(tree_->proc()), pid);
  if (keepers.empty()) {
    samples_.erase(pid);
    return std::nullopt;
  }
  const auto sample = tree_->sample();
  const Sample before = std::exchange(samples_[pid], *sample);
  auto part = before.threads.empty() ? std::nullopt : still_part(before, *sample);
  if (!part) return std::nullopt;
  Assumptions assumptions = tree_->early_assumptions();
  assumptions.pool_keepers = std::move(keepers);
  auto proof = tree_->judge_assuming(std::make_unique<Sample>(std::move(*part)), std::move(assumptions));
  return proof && proof->judgement.stuck.count(pid) != 0 ? std::move(proof) : std::nullopt;
}

std::optional<Proof> PoolCallbackWatch::look(const std::set<pid_t>& processes, const std::map<pid_t, Nanos>& moves,
                                             Nanos now) {
  const auto is_gone = [&processes](pid_t pid) { return processes.count(pid) == 0; };
  std::erase_if(reported_early_, is_gone);
  std::erase_if(samples_, [&is_gone](const auto& one) { return is_gone(one.first); });
  const auto is_long = [&](pid_t pid) { return now - moves.at(pid) >= tree_->options().stall; };
  pid_t found = suspects_.look(processes, now);
  const auto late = std::find_if(reported_early_.begin(), reported_early_.end(), is_long);
  if (found == 0 && late != reported_early_.end()) found = reported_early_.extract(late).value();
  auto proof = found == 0 ? std::nullopt : judge(found);
  if (!proof || !unawaited_.is_news(proof->judgement)) return std::nullopt;
  proof->is_early = !is_long(found);
  if (proof->is_early) reported_early_.insert(found);
  proof->last_moved = moves.at(found);
  return proof;
}

}  // namespace mprun
