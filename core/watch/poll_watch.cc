#include "watch/poll_watch.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "watch/stalls/lost_poller.h"

namespace mprun {
namespace {

// A loop takes other ways through the interpreter now and then. Polls that were seen elsewhere for less than this time
// are those that were reported.
constexpr Nanos kElsewhere = 10 * kNanosPerSecond;
// A tree that polls is looked at this often, less if looks are expensive; the first few looks need not wait for that.
constexpr Nanos kPollLookEvery = kNanosPerSecond;
constexpr TimeShare::Limits kPollLooks{200, 60 * kNanosPerSecond, 15 * kNanosPerSecond};

// How often the same polls are judged: one that expires during a judgement does not show what it waits for. Later they
// are judged again, as what is around them may have changed.
constexpr int kMostJudgements = 3;
constexpr Nanos kJudgedAgain = 15 * kNanosPerSecond;

Nanos cpu_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }  // a crowded machine makes a look no more expensive

}  // namespace

PollWatch::PollWatch(const WatchedTree* tree)
    : tree_(tree),
      looks_(kPollLooks),
      polls_(tree->proc()),
      lost_pollers_([tree](pid_t pid) { return waits_for_grpc(tree->proc(), pid); }) {}

bool PollWatch::any_runs() const {
  return std::any_of(sample_.threads.begin(), sample_.threads.end(),
                     [](const ThreadSample& thread) { return thread.call.running && thread.state != 'Z'; });
}

pid_t PollWatch::find_lost_poller_now(const Sample& sample) const {
  return lost_pollers_.find_now(processes_that_poll_nothing(sample));
}

std::optional<Proof> PollWatch::find_lost_poller(const Sample& sample, Nanos now) {
  const pid_t found = lost_pollers_.look(processes_that_poll_nothing(sample), now);
  if (found == 0) return std::nullopt;
  Proof proof = tree_->as_stall(std::make_unique<Sample>(sample));
  const TreeSnapshot::Process* process = proof.snapshot->process(found);
  if (process == nullptr || !process->forked) return std::nullopt;
  proof.lost_poller = found;
  proof.is_early = tree_->options().stall > kEarlyStall;
  proof.last_moved = 0;
  return proof;
}

PollWatch::State PollWatch::state_of(const Sample& part, Nanos since) const {
  State state{since, polls_.polls(), polls_.child_polls(), polls_.own_polls(), polls_.beats(), {}};
  for (const ThreadSample& thread : part.threads) {
    if (thread.moved && !state.is_poll(thread.tid)) state.ran.insert(thread.tid);
  }
  return state;
}

// Not judged kMostJudgements times just before, and not what was reported.
bool PollWatch::is_news(const State& state, Nanos now) {
  if (!(state == judged_) || now - judged_at_ >= kJudgedAgain) judgements_ = 0;
  if (++judgements_ > kMostJudgements) return false;
  judged_ = state;
  judged_at_ = now;
  if (!state.is_like(reported_) || state.since - went_on_ >= kElsewhere) return true;
  reported_.since = state.since;
  return false;
}

std::optional<Proof> PollWatch::judge(const Sample& part, const State& state) const {
  Assumptions assumptions = tree_->early_assumptions();
  assumptions.polls = state.polls;
  assumptions.child_polls = state.child_polls;
  assumptions.own_polls = state.own_polls;
  assumptions.beats = state.beats;
  auto proof = tree_->judge_assuming(std::make_unique<Sample>(part), std::move(assumptions));
  if (proof) proof->is_early = true;
  return proof;
}

// The processes that have long been where they are, while others run. What is stuck without a poll is found by the
// watcher itself.
std::optional<Proof> PollWatch::look_at_part(Sample part, Nanos now) {
  const Nanos stall = tree_->options().stall;
  const std::set<pid_t> resting = polls_.resting(std::min(kEarlyStall, stall), now);
  State state = state_of(part, 0);
  state.is_late = resting == polls_.resting(stall, now);
  for (ThreadSample& thread : part.threads) {
    if (resting.count(thread.pid) != 0) continue;
    thread.moved = true;
    state.leave_out(thread.tid);
  }
  if (!state.any_polls() || !is_news(state, now)) return std::nullopt;
  auto proof = judge(part, state);
  if (!proof) return std::nullopt;
  const Judgement& judgement = proof->judgement;
  const bool any_poll = std::any_of(judgement.threads.begin(), judgement.threads.end(), [&](const JudgedThread& one) {
    return judgement.stuck.count(one.sample->pid) != 0 && state.is_poll(one.sample->tid);
  });
  if (!any_poll || !unawaited_.is_news(judgement)) return std::nullopt;
  const std::pair report{judgement.stuck, state.is_late};
  if (!is_unawaited_part(judgement) && std::exchange(reported_part_, report) == report) return std::nullopt;
  proof->is_early = !state.is_late;
  proof->last_moved = 0;  // others run
  return proof;
}

std::optional<Proof> PollWatch::look(Nanos now, bool busy) {
  if (now - last_look_ < kPollLookEvery || !looks_.allows(now)) return std::nullopt;
  last_look_ = now;
  const Nanos began = cpu_time();
  auto sample = busy ? tree_->sample() : tree_->sample_at_rest();
  polls_.take(*sample, now);
  const Nanos since = polls_.since(now);
  const Nanos looked = cpu_time();
  looks_.spend(now, looked - began);
  if (auto proof = find_lost_poller(*sample, now)) return proof;
  const auto part = still_part(std::exchange(sample_, *sample), *sample);
  if (!part) return std::nullopt;
  if (since == 0) {
    auto proof = look_at_part(*part, now);
    looks_.spend(now, cpu_time() - looked);
    return proof;
  }
  if (since == reported_.since) went_on_ = now;
  if (now - since < kEarlyStall || since == reported_.since) return std::nullopt;
  const State state = state_of(*part, since);
  if (!is_news(state, now)) return std::nullopt;
  if (find_lost_poller_now(*sample) != 0) return std::nullopt;  // which is reported soon
  auto proof = judge(*part, state);
  looks_.spend(now, cpu_time() - looked);
  if (!proof || !unawaited_.is_news(proof->judgement)) return std::nullopt;
  if (!is_unawaited_part(proof->judgement)) {
    reported_ = judged_;
    went_on_ = now;
  }
  proof->is_due = tree_->options().stall <= kEarlyStall;
  proof->last_moved = since;
  return proof;
}

}  // namespace mprun
