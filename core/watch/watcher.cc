#include "watch/watcher.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "watch/judge/main_threads.h"

namespace mprun {
namespace {

constexpr Nanos kLookEvery = 200 * kNanosPerMilli;
// A program that ends sooner is spared the first look, which reads a line of /proc for every process of the machine.
constexpr Nanos kFirstLook = 50 * kNanosPerMilli;
// Between samples of a tree that seems to stand still, and of one where only a part does.
constexpr Nanos kSampleEvery = 40 * kNanosPerMilli;
constexpr Nanos kPartSampleEvery = 100 * kNanosPerMilli;
// How long a process must rest while others run, before it is worth a judgement.
constexpr Nanos kRest = 300 * kNanosPerMilli;
// While a tree is busy, judgements of parts, and samples that find its new threads, take only a share of the time. The
// first of them do not wait, so that a hang that begins with new processes is found as soon as any other.
constexpr TimeShare::Limits kParts{500, 2 * kNanosPerSecond, 2 * kNanosPerSecond};
constexpr TimeShare::Limits kBusySamples{1000, 5 * kNanosPerSecond, 15 * kNanosPerSecond};
// What rests may get stuck without a move of its own: an alarm's time passes, a process outside ends, one that runs
// closes a pipe. So it is judged again after this time at the soonest, and that takes only a share of the time.
constexpr Nanos kAgainAfter = kNanosPerSecond;
constexpr TimeShare::Limits kAgain{250, 5 * kNanosPerSecond, 8 * kNanosPerSecond};
// How long all must rest but those that wait for a GIL; and how many looks at that before their interval doubles.
constexpr Nanos kRestAtGil = 400 * kNanosPerMilli;
constexpr int kManyLooksAtGil = 10, kMostDoublingsAtGil = 7;
constexpr Nanos kLongRest = 2 * kNanosPerSecond, kPatienceStep = 100 * kNanosPerMilli,
                kMostPatience = 800 * kNanosPerMilli;
// If only the main threads of processes are blocked, their other threads could still do something about it, such as
// ending the process that is waited for. If they have not by then, they are not there for that.
constexpr Nanos kHelpersMayAct = 10 * kNanosPerSecond;
// A thread that waits for a GIL may be just asking for it: it is looked at until it waits again, a millisecond each.
constexpr int kMostTriesAtGil = 30;
}  // namespace

Watcher::Watcher(ProcSource* proc, WatchedTree::Options tree, WatchedTree::AskBoundary boundary,
                 WatchedTree::CountDeaths deaths, WatchedTree::TakeSample taken)
    : tree_(proc, tree, std::move(boundary), std::move(deaths), std::move(taken)),
      orphaned_(proc),
      stalls_(&tree_),
      parts_(kParts),
      busy_samples_(kBusySamples),
      again_(kAgain),
      next_look_(monotonic_now() + kFirstLook) {}

void Watcher::sample_again(Nanos now) {
  sample_ = tree_.sample();
  activity_.set_threads(*sample_, now);
  orphaned_.consider(*sample_, now);
}

// True if one of these processes was not judged since it began to rest.
bool Watcher::is_one_unjudged(const std::set<pid_t>& resting) const {
  const std::set<pid_t> rested = activity_.resting_since(judged_at_);
  return std::any_of(resting.begin(), resting.end(),
                     [&](pid_t pid) { return judged_resting_.count(pid) == 0 || rested.count(pid) == 0; });
}

// Starts to take samples if it is worth it: when no thread moves, or a process has rested for long while others run.
void Watcher::wait_for_rest(Nanos now) {
  const bool look_at_all = now - last_part_ >= kRest && parts_.allows(now);
  const bool ask = now >= next_gil_look_;
  const bool moved = activity_.has_moved(now, look_at_all, ask);
  if (ask && moved) {
    gil_looks_ = activity_.mover_wants_gil() ? gil_looks_ + 1 : 0;
    // What goes on like this is no hang, or was reported, or only looks like a hang: it is asked less and less often.
    const int doublings = std::clamp(gil_looks_ - kManyLooksAtGil, 0, kMostDoublingsAtGil);
    next_gil_look_ = now + (kLookEvery << doublings);
  }
  // A tree that wakes up again and again is not judged each time: the more often it does, the longer a rest must be.
  if (moved && judged_still_) {
    patience_ = now - last_moved_ < kLongRest ? std::min(patience_ + kPatienceStep, kMostPatience) : 0;
  }
  if (moved) last_moved_ = now;
  const bool no_thread_moves = !moved && !activity_.knows_none();
  const bool helpers_late = helpers_until_ != 0 && now >= helpers_until_;
  const bool again = again_.allows(now) && now - judged_at_ >= kAgainAfter;
  const bool is_known = judged_still_ && !helpers_late && !again;
  if (no_thread_moves && (is_known || now - last_moved_ < patience_)) return;
  judged_still_ = false;
  // No thread moves but to ask for a GIL.
  at_gil_ = moved && activity_.all_rest_since(now - kRestAtGil);
  bool part = false;
  if (at_gil_ && now - last_part_ >= kRestAtGil) {
    judged_resting_ = activity_.resting_since(now - kRestAtGil);
    part = true;
    last_part_ = now;
  } else if (moved && !at_gil_ && look_at_all) {
    std::set<pid_t> resting = activity_.resting_since(now - kRest);
    part = is_one_unjudged(resting) || (again && !resting.empty());
    if (part) judged_resting_ = std::move(resting);
    last_part_ = now;
  }
  // Unknown threads were started by known ones, and those have moved.
  if (moved && !part && !activity_.knows_none() && !busy_samples_.allows(now)) return;
  sample_again(now);
  busy_samples_.spend(now, monotonic_now() - now);
  if (sample_->threads.empty() || (moved && !part)) return;
  judged_at_ = now;
  of_part_ = part;
  phase_ = Phase::kFirst;
  next_look_ = now + sample_every();
}

Nanos Watcher::sample_every() const { return of_part_ && !at_gil_ ? kPartSampleEvery : kSampleEvery; }

std::optional<Proof> Watcher::find_proof(Nanos now) {
  next_look_ = now + kLookEvery;
  if (last_moved_ == 0) last_moved_ = now;
  if (phase_ == Phase::kResting) {
    wait_for_rest(now);
    return std::nullopt;
  }
  const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const auto before = std::move(sample_);
  sample_again(now);
  if (of_part_) {
    tree_.catch_at_rest(sample_.get(), kMostTriesAtGil,
                        [this](const ThreadSample& thread) { return judged_resting_.count(thread.pid) != 0; });
  }
  if (!of_part_ && !stood_still(*before, *sample_)) {
    phase_ = Phase::kResting;
    pending_.reset();
    judged_still_ = false;  // has_moved() sees no move that is older than the last sample
    last_moved_ = now;
    patience_ = std::min(patience_ + kPatienceStep, kMostPatience);
    return std::nullopt;
  }
  auto proof = tree_.judge_part(*before, *sample_);
  parts_.spend(now, monotonic_now() - now);
  again_.spend(now, read_clock(CLOCK_THREAD_CPUTIME_ID) - began);
  if (of_part_ && lacks_process(*sample_, tree_.processes())) proof.reset();
  const bool is_first = phase_ == Phase::kFirst;
  phase_ = Phase::kResting;
  const auto agreed = std::exchange(pending_, std::nullopt);
  judged_still_ = !of_part_ && proof;
  if (!proof) judged_resting_.clear();  // there was no judgement: try again
  if (proof && proof->judgement.stuck.empty()) helpers_until_ = 0;
  if (!proof) return std::nullopt;
  if (proof->judgement.stuck.empty()) {
    return of_part_ && reported_nothing() ? stalls_.look_at_part(*sample_, {}, now) : std::nullopt;
  }
  if (is_first) {
    pending_ = std::move(proof);
    phase_ = Phase::kSecond;
    next_look_ = now + sample_every();
    return std::nullopt;
  }
  Judgement& other = proof->judgement;
  if (!other.agrees_with(agreed->judgement)) {
    judged_still_ = false;
    judged_resting_.clear();
    return std::nullopt;
  }
  find_who_cannot_return(&*proof, now);
  if (is_reported(other)) {
    auto lasting = find_lasting(std::move(proof), now);
    if (lasting || !of_part_ || !reported_nothing()) return lasting;
    return stalls_.look_at_part(*sample_, reported_, now);
  }
  reported_ = other.stuck;
  reported_cannot_return_ = other.cannot_return;
  idle_.clear();
  reported_at_ = now;
  proof->verdict = other.is_deadlock() ? HangVerdict::kDeadlock : HangVerdict::kPartialDeadlock;
  proof->last_moved = last_moved_;
  return proof;
}

bool Watcher::is_reported(const Judgement& judgement) const {
  const std::set<pid_t>& cannot = judgement.cannot_return;
  return judgement.stuck == reported_ &&
         std::includes(reported_cannot_return_.begin(), reported_cannot_return_.end(), cannot.begin(), cannot.end());
}

// What looks idle may be meant to wait until it is ended. But if a main thread waits for that, or if it is the program
// itself or the command of a shell, and none of those that run has done it for long, it may be stuck.
std::optional<Proof> Watcher::find_lasting(std::optional<Proof> proof, Nanos now) {
  if (reported_at_ == 0 || now - reported_at_ < kHelpersMayAct) return std::nullopt;
  const std::set<pid_t> commands = commands_of_shells(proof->judgement);
  const auto is_program = [&](pid_t pid) {
    const auto* process = proof->snapshot->process(pid);
    if (process == nullptr || commands.count(pid) != 0) return process != nullptr;
    return (tree_.options().with_root ? pid : process->parent) == tree_.options().root;
  };
  const std::set<pid_t>& stuck = proof->judgement.stuck;
  const bool matters = is_waited_for(proof->judgement) || std::any_of(stuck.begin(), stuck.end(), is_program);
  if (proof->judgement.is_deadlock() || !matters) return std::nullopt;
  reported_at_ = 0;
  proof->verdict = HangVerdict::kStalled;
  proof->last_moved = 0;  // others run
  proof->but_for = "a process that still runs may end those that wait";
  proof->is_early = proof->was_proved = true;
  return proof;
}

void Watcher::find_who_cannot_return(Proof* proof, Nanos now) {
  Judgement& judgement = proof->judgement;
  judgement.cannot_return = processes_that_cannot_return(judgement, proof->snapshot.get());
  if (judgement.cannot_return == judgement.stuck) {
    up_to_helpers_.clear();
    helpers_until_ = 0;
    return;
  }
  if (judgement.cannot_return != up_to_helpers_) {
    up_to_helpers_ = judgement.cannot_return;
    helpers_until_ = now + kHelpersMayAct;
  }
  if (now < helpers_until_) {
    judgement.cannot_return = judgement.stuck;
    return;
  }
  helpers_until_ = 0;
  mark_main_threads(&judgement);
}

std::optional<Proof> Watcher::find_orphaned_lock(Nanos now) {
  if (!orphaned_.is_due(now)) return std::nullopt;
  Proof proof;
  const auto judge = [&](std::unique_ptr<Sample> sample) {
    proof = tree_.judge(std::move(sample));
    Judgement& found = proof.judgement;
    found.orphaned = find_orphaned_waits(found, proof.snapshot.get());
    mark_orphaned(&found);
    found.cannot_return = processes_that_cannot_return(found, proof.snapshot.get());
    mark_main_threads(&found);
    for (OrphanedWait& wait : found.orphaned) wait.held_up = found.cannot_return.size();
    return found.orphaned;
  };
  auto sample = tree_.sample();
  tree_.catch_at_rest(sample.get(), kMostTriesAtGil,
                      [this](const ThreadSample& thread) { return orphaned_.is_awaited(thread.tid); });
  if (!orphaned_.look(std::move(sample), now, judge)) return std::nullopt;
  proof.verdict = HangVerdict::kOrphanedLock;
  auto moves = activity_.last_moves();
  proof.last_moved = 0;
  for (const OrphanedWait& wait : proof.judgement.orphaned) {
    proof.last_moved = std::max(proof.last_moved, moves[wait.tid]);
  }
  return proof;
}

std::optional<Proof> Watcher::look(Nanos now) {
  auto proof = find_any(now);
  if (!proof) return proof;
  proof->last_moves = activity_.last_moves();
  if (proof->lost_task == 0) last_found_ = now;
  return proof;
}

std::optional<Proof> Watcher::find_any(Nanos now) {
  const bool was_stopped = next_look_ != 0 && now - next_look_ >= kStoppedAfter;
  if (was_stopped) stalls_.start_again();  // perhaps all others were stopped, too
  auto proof = find_proof(now);
  if (!proof) proof = find_orphaned_lock(now);
  if (proof) return proof;
  const bool proved_nothing = phase_ == Phase::kResting && reported_nothing();
  return stalls_.look(activity_, {proved_nothing, judged_still_, reported_, last_moved_, last_found_}, now);
}

}  // namespace mprun
