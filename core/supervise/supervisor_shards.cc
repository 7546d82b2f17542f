// How the ranks of this shard start, start again and end together with those of others (core/cluster/rendezvous.h).
#include <utility>

#include "supervise/cause_text.h"
#include "supervise/supervisor.h"

namespace mprun {

void Supervisor::meet_shards() {
  if (setup_.rendezvous == nullptr) return;
  const auto [state, attempt] = scheduler_->rank_state();
  const GroupDecision* decision = setup_.rendezvous->meet(state, attempt, why_failed(), monotonic_now());
  if (decision == nullptr) return;
  const std::pair now(decision->phase, decision->attempt);
  if (std::exchange(decided_, now) == now) return;
  if (decision->phase == GroupPhase::kGather && decision->attempt > 1 && announced_ < decision->attempt - 1) {
    announced_ = decision->attempt - 1;
    notice(Notice::Kind::kWarning, decision->reason + ": " + restart_text(announced_), LogComponent::kCluster);
  }
  if (decision->phase == GroupPhase::kStopped && state != RankState::kStopped) {
    notice(Notice::Kind::kError, decision->reason + "; the ranks of this shard are ended", LogComponent::kCluster);
  }
  post(event::GroupDecided{decision->phase, decision->attempt});
}

// For the other shards.
std::string Supervisor::why_failed() const {
  if (scheduler_->start_failed()) return launch_error_.empty() ? start_death_ : launch_error_;
  if (stop_signal_ != 0) return "a signal has asked it to end";
  if (scheduler_->stopping() == Cause::kJobLimit) return cause_text(Cause::kJobLimit, policy_, 0, "");
  return fatal_ ? fatal_->message : rank_failure_;
}

}  // namespace mprun
