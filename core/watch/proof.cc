#include "watch/proof.h"

#include <algorithm>

namespace mprun {
namespace {

// A wait with at least this much time left may be reported before its limit has passed.
constexpr Nanos kAnyLimit = 1, kFarLimit = 60 * kNanosPerSecond;
constexpr std::size_t kMostAssumedListed = 2;

std::string list_some(const std::vector<std::string>& assumed) {
  std::string list;
  for (std::size_t i = 0; i < std::min(assumed.size(), kMostAssumedListed); ++i) {
    list += (i == 0 ? "" : "; ") + assumed[i];
  }
  return assumed.size() > kMostAssumedListed ? list + "; and so on" : list;
}

}  // namespace

std::set<pid_t> commands_of_shells(const Judgement& judgement) {
  std::set<pid_t> commands;
  for (const JudgedThread& thread : judgement.threads) {
    if (!thread.wait.of_command) continue;
    for (const Waker& waker : thread.wait.wakers) commands.insert(waker.pid);
  }
  return commands;
}

bool is_waited_for(const Judgement& judgement) {
  return std::any_of(judgement.threads.begin(), judgement.threads.end(), [&](const JudgedThread& thread) {
    const auto& wakers = thread.wait.wakers;
    return thread.wait.kind == WaitKind::kChild && !thread.wait.of_command && !thread.live &&
           thread.sample->tid == thread.sample->pid && std::all_of(wakers.begin(), wakers.end(), [&](const Waker& one) {
             return judgement.stuck.count(one.pid) != 0;
           });
  });
}

bool is_unawaited_part(const Judgement& judgement) {
  return !judgement.stuck.empty() && !judgement.is_deadlock() && !is_waited_for(judgement);
}

Proof judge_sample(ProcSource* proc, std::unique_ptr<Sample> sample, TreeBoundary boundary) {
  Proof proof;
  proof.sample = std::move(sample);
  proof.snapshot = std::make_unique<TreeSnapshot>(proc, proof.sample.get(), std::move(boundary));
  proof.judgement = judge(*proof.sample, proof.snapshot.get());
  return proof;
}

Assumptions assumptions_before(Nanos stall) {
  Assumptions assumptions;
  assumptions.handlers_release_no_thread = assumptions.no_outside_peers = true;
  assumptions.no_limit_from = std::max(stall, kFarLimit);
  return assumptions;
}

Assumptions assumptions_after_stall() {
  Assumptions assumptions = assumptions_before(0);
  assumptions.stopped_stay_stopped = true;  // before, it may be continued soon
  assumptions.no_limit_from = kAnyLimit;
  return assumptions;
}

std::optional<Proof> judge_assuming(ProcSource* proc, std::unique_ptr<Sample> sample, TreeBoundary boundary,
                                    Assumptions assumptions) {
  boundary.assumptions = std::move(assumptions);
  Proof proof = judge_sample(proc, std::move(sample), std::move(boundary));
  const auto& assumed = proof.snapshot->assumed();
  if (!proof.sample->whole || proof.judgement.stuck.empty() || assumed.empty()) return std::nullopt;
  proof.verdict = HangVerdict::kStalled;
  proof.but_for = list_some(assumed);
  proof.needs_no_signal = proof.snapshot->assumes_no_signal();
  proof.needs_no_client = proof.snapshot->assumes_no_client();
  proof.needs_no_limit = proof.snapshot->assumes_no_limit();
  proof.needs_no_beat = proof.snapshot->assumes_beat();
  proof.needs_only_idle_runtimes = proof.snapshot->assumes_only_idle_runtimes();
  proof.needs_only_timers = proof.snapshot->assumes_only_timers();
  return proof;
}

}  // namespace mprun
