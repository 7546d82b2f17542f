#include "watch/spin_watch.h"

#include <algorithm>
#include <utility>

namespace mprun {
namespace {

constexpr Nanos kSpinLookEvery = kNanosPerSecond, kLatestSpinLook = 15 * kNanosPerSecond;
// Looks take a smaller share of the time than 1/30 only while nothing spins: a look at a thread that does costs more,
// and there is nothing else to do. The smallest until it has been seen often enough to count.
constexpr Nanos kNoSpinLookShare = 200, kSpinLookShare = 30, kFirstSpinLookShare = 10;

}  // namespace

std::optional<Proof> SpinWatch::look(Nanos now) {
  if (now < next_look_) return std::nullopt;
  auto sample = tree_->sample();
  spins_.take(*sample, now);
  const Nanos since = spins_.since();
  const Nanos share = spins_.spins().empty() ? kNoSpinLookShare : since == 0 ? kFirstSpinLookShare : kSpinLookShare;
  next_look_ = now + std::clamp((monotonic_now() - now) * share, kSpinLookEvery, kLatestSpinLook);
  const auto part = still_part(std::exchange(sample_, *sample), *sample);
  if (since == 0 || now - since < kEarlyStall || !part) return std::nullopt;
  const bool is_early = now - since < tree_->options().stall;
  const Nanos judged = is_early ? since : since + tree_->options().stall;
  if (judged == judged_ || (is_early && spins_.spins() == reported_)) return std::nullopt;
  judged_ = judged;
  Assumptions assumptions = tree_->early_assumptions();
  assumptions.spins = spins_.spins();
  auto proof = tree_->judge_assuming(std::make_unique<Sample>(*part), std::move(assumptions));
  if (!proof || !unawaited_.is_news(proof->judgement)) return std::nullopt;
  if (!is_unawaited_part(proof->judgement)) reported_ = spins_.spins();
  proof->is_early = is_early;
  proof->last_moved = since;
  return proof;
}

}  // namespace mprun
