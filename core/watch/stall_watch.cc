#include "watch/stall_watch.h"

#include <algorithm>
#include <utility>

#include "watch/judge/library_waits.h"
#include "watch/judge/spinning_calls.h"
#include "watch/judge/time_limit.h"
#include "watch/sample/signal_handlers.h"
#include "watch/stalls/lost_result.h"
#include "watch/stalls/progress.h"

namespace mprun {
namespace {

// A tree that only polls uses at most this much of a CPU.
constexpr double kMostLoadOfPolls = 0.25;
// How often to look whether any thread has got anywhere: a tenth of the time that counts as a stall.
constexpr Nanos kSoonestStallLook = 300 * kNanosPerMilli, kLatestStallLook = 30 * kNanosPerSecond;
// A wait with less time left that has not ended yet is no stall: it will end by itself, on a crowded machine a moment
// late. More time may be as good as none.
constexpr Nanos kLongTimer = 60 * kNanosPerSecond, kLateWakeUp = kNanosPerSecond;
// A poll that is caught while it looks around does not show what it waits for.
constexpr int kTriesToName = 4;
// A tree that stands still is judged again with assumptions, as the outside may have changed.
constexpr Nanos kEarlyAgain = 10 * kNanosPerSecond;
// So many children that end badly within the time of a stall are no accident.
constexpr std::size_t kManyDeaths = 5;

std::map<pid_t, double> wakeups_between(const Sample& before, const Sample& after, Nanos apart) {
  std::map<pid_t, double> wakeups;
  for (const ThreadSample& thread : before.threads) wakeups[thread.tid] = -static_cast<double>(thread.runs);
  for (const ThreadSample& thread : after.threads) {
    const auto known = wakeups.find(thread.tid);
    if (known != wakeups.end()) known->second = (known->second + static_cast<double>(thread.runs)) / to_seconds(apart);
  }
  return wakeups;
}

// A thread that executes no Python, in a process that does.
bool is_of_library(ProcSource* proc, const ThreadSample& thread) {
  if (thread.tid == thread.pid) return false;
  const PythonStacks stacks = read_python_stacks(proc, thread.pid);
  return !stacks.threads.empty() &&
         std::none_of(stacks.threads.begin(), stacks.threads.end(),
                      [&thread](const PythonThread& one) { return one.tid == thread.tid && !one.frames.empty(); });
}

// What keeps a CPU busy but only moves what other threads send gets nowhere while they do not.
Sample without_reactors(ProcSource* proc, Sample sample) {
  std::erase_if(sample.threads, [proc](const ThreadSample& thread) { return is_busy_reactor(proc, thread); });
  return sample;
}

}  // namespace

StallWatch::StallWatch(const WatchedTree* tree) : tree_(tree), polls_(tree), spins_(tree), lost_results_(tree) {}

// A shell may run a program or a part of its script that fails again and again until it succeeds: its children are no
// workers. What a process that has just ended ran is not known.
bool StallWatch::are_many_workers(pid_t parent, const WatchedTree::Deaths& dead) const {
  if (dead.all < kManyDeaths) return false;
  const auto program = tree_->proc()->link(std::to_string(parent) + "/exe");
  const bool are_of_program = dead.forked >= kManyDeaths && program && !is_shell(*program);
  return are_of_program || waits_for_pool(stack_reader(tree_->proc()), parent);
}

// A process whose first thread gets nowhere while its children die one after the other; 0: there is none.
pid_t StallWatch::find_respawner(Nanos now) const {
  const Nanos stall = tree_->options().stall;
  const auto found = std::find_if(sample_->threads.begin(), sample_->threads.end(), [&](const ThreadSample& thread) {
    return thread.tid == thread.pid && stall_.of_thread(thread.tid, now) >= stall &&
           are_many_workers(thread.pid, tree_->deaths(thread.pid, now - stall));
  });
  return found == sample_->threads.end() ? 0 : found->pid;
}

// How long until the threads have woken up that wait for the first time at their places, and not for long. Those of
// libev and eventlet, of Go and of a Java virtual machine wake up to look around, even if nothing is to happen, and so
// do the threads that libraries start in a process with Python.
std::optional<Nanos> StallWatch::time_of_timers(Nanos now) const {
  TreeSnapshot snapshot(tree_->proc(), sample_.get(), {});
  std::optional<Nanos> longest;
  for (const ThreadSample& thread : sample_->threads) {
    if (thread.state != 'S' || stall_.has_woken(thread.tid) || is_idle_libev(thread)) continue;
    const auto left = time_left(thread, stall_.of_thread(thread.tid, now), &snapshot);
    if (!left || left <= longest || *left >= kLongTimer || snapshot.jvm(thread.pid) != nullptr) continue;
    if (is_go_monitor(thread, &snapshot) || is_idle_event_loop(thread, &snapshot)) continue;
    if (!is_of_library(tree_->proc(), thread)) longest = left;
  }
  return longest;
}

void StallWatch::take(const ActivityMeter& activity, Nanos now) {
  sample_ = activity.load() <= kMostLoadOfPolls ? tree_->sample_at_rest() : tree_->sample();
  Progress progress(tree_->proc());
  stall_.take(without_reactors(tree_->proc(), *sample_), now,
              [&progress](const ThreadSample& thread) { return progress.of(thread); });
}

// The stall of the last sample; nullopt: it is a deadlock, and a proof will say more.
std::optional<Proof> StallWatch::judge_late(const Sample& before, pid_t lost_task) const {
  auto proof = tree_->judge_part(before, *sample_);
  if (!proof || proof->judgement.is_deadlock()) return std::nullopt;
  Assumptions assumptions = assumptions_after_stall();
  assumptions.child_polls = polls_.child_polls();
  assumptions.own_polls = polls_.own_polls();
  assumptions.beats = polls_.beats();
  const auto name = [&](std::unique_ptr<Sample> sample) {
    auto found = tree_->judge_assuming(std::move(sample), assumptions);
    return found && is_unawaited_part(found->judgement) ? std::nullopt : std::move(found);
  };
  auto named = name(std::make_unique<Sample>(*sample_));
  for (int i = 0; i < kTriesToName && !named; ++i) named = name(tree_->sample_at_rest());
  const pid_t lost_poller = polls_.find_lost_poller_now(*sample_);
  if (named && lost_task == 0 && lost_poller == 0) proof = std::move(named);  // else they say more
  proof->lost_task = lost_task;
  proof->lost_poller = lost_poller;
  return proof;
}

std::optional<Proof> StallWatch::find_late(const ActivityMeter& activity, const Standing& standing, Nanos now) {
  const Nanos stall = tree_->options().stall;
  if (now - last_look_ < std::clamp(stall / 10, kSoonestStallLook, kLatestStallLook)) return std::nullopt;
  const Nanos apart = now - std::exchange(last_look_, now);
  const auto before = std::move(sample_);
  take(activity, now);
  const Nanos stood = stall_.of_all(now);
  const pid_t respawner = find_respawner(now);
  const bool stalled = stood >= stall || respawner != 0;
  if (!first_ || first_at_ < now - stood) {
    first_ = std::make_unique<Sample>(*sample_);
    first_at_ = now;
    timers_were_late_ = false;
  }
  if (!stalled || reported_ || !before) {
    reported_ = stalled && reported_;
    return std::nullopt;
  }
  if (respawner == 0 && now < not_before_) return std::nullopt;
  // A thread whose time is up may not have had a CPU yet.
  const auto left = respawner != 0 ? std::nullopt : time_of_timers(now);
  if (left && (*left != 0 || !std::exchange(timers_were_late_, true))) {
    not_before_ = now + *left + kLateWakeUp;
    return std::nullopt;
  }
  auto proof = judge_late(*before, lost_results_.find_lost_task_now(activity, standing.last_found, now));
  if (!proof) return std::nullopt;
  proof->verdict = HangVerdict::kStalled;
  const bool is_longer = now - first_at_ > apart;
  proof->wakeups =
      is_longer ? wakeups_between(*first_, *sample_, now - first_at_) : wakeups_between(*before, *sample_, apart);
  proof->respawner = respawner;
  proof->last_moved = now - std::max(stood, stall);
  // What has moved or ended while the tree was judged has not stalled.
  take(activity, now);
  if (respawner == 0 && stall_.of_all(now) < stall) return std::nullopt;
  reported_ = true;
  return proof;
}

std::optional<Proof> StallWatch::find_early(const ActivityMeter& activity, const Standing& standing, Nanos now) {
  if (!standing.proved_nothing) return std::nullopt;
  if (!standing.judged_still) {
    const bool only_polls = activity.load() <= kMostLoadOfPolls;
    auto polling = polls_.look(now, !only_polls);
    if (polling && !(polling->is_due && reported_)) return polling;
    // On a crowded machine, a thread that spins gets no more of a CPU than others need to poll.
    return only_polls && !polls_.any_runs() ? std::nullopt : spins_.look(now);
  }
  const bool is_early = tree_->options().stall > kEarlyStall && now - standing.last_moved >= kEarlyStall;
  const bool is_due = judged_early_ <= standing.last_moved || now - judged_early_ >= kEarlyAgain;
  if (!is_early || !is_due || reported_early_ == standing.last_moved) return std::nullopt;
  judged_early_ = now;
  auto proof = tree_->judge_assuming(tree_->sample(), tree_->early_assumptions());
  if (!proof || proof->judgement.stuck == standing.proved || !unawaited_.is_news(proof->judgement)) return std::nullopt;
  if (!is_unawaited_part(proof->judgement)) reported_early_ = standing.last_moved;
  proof->is_early = true;
  proof->last_moved = standing.last_moved;
  return proof;
}

std::optional<Proof> StallWatch::look_at_part(const Sample& sample, const std::set<pid_t>& proved, Nanos now) {
  const Nanos stall = tree_->options().stall;
  if (stall == 0 || (part_.sample && now - part_.taken < std::min(stall, kEarlyStall))) return std::nullopt;
  const Nanos since = std::exchange(part_.taken, now);
  const auto before = std::exchange(part_.sample, std::make_unique<Sample>(sample));
  auto still = before ? still_part(*before, sample) : std::nullopt;
  if (!still) return std::nullopt;
  auto proof = tree_->judge_assuming(std::make_unique<Sample>(std::move(*still)), tree_->early_assumptions());
  const std::set<pid_t> stuck = proof ? proof->judgement.stuck : std::set<pid_t>();
  if (std::exchange(part_.stuck, stuck) != stuck) {
    part_.since = since;
    part_.reports = 0;
  }
  const bool is_early = now - part_.since < stall;
  if (!proof || stuck == proved || part_.reports >= (is_early ? 1 : 2)) return std::nullopt;
  const bool is_unawaited = is_unawaited_part(proof->judgement);
  if (is_unawaited && (!is_early || !unawaited_.is_news(proof->judgement))) return std::nullopt;
  if (!is_unawaited) part_.reports = is_early ? 1 : 2;
  proof->is_early = is_early;
  proof->last_moved = 0;  // others run
  return proof;
}

// That the process has lost a task was reported, and its main thread has not moved since.
bool StallWatch::is_of_lost_task(const Proof& proof, const ActivityMeter& activity) const {
  const auto [process, reported_at] = lost_task_;
  if (!proof.is_early || proof.judgement.stuck.count(process) == 0) return false;
  const auto moves = activity.last_moves();
  const auto moved = moves.find(process);
  return moved != moves.end() && moved->second <= reported_at;
}

std::optional<Proof> StallWatch::look(const ActivityMeter& activity, const Standing& standing, Nanos now) {
  if (tree_->options().stall == 0) return std::nullopt;
  auto proof = find_early(activity, standing, now);
  if (proof && is_of_lost_task(*proof, activity)) proof.reset();
  if (!proof) proof = lost_results_.look(activity, standing.last_found, now);
  if (proof && proof->lost_task != 0) lost_task_ = {proof->lost_task, now};
  return proof ? std::move(proof) : find_late(activity, standing, now);
}

}  // namespace mprun
