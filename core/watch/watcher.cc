#include "watch/watcher.h"

#include <algorithm>
#include <ctime>

#include "procfs/process_table.h"
#include "watch/judge/library_waits.h"
#include "watch/judge/main_threads.h"
#include "watch/judge/spinning_calls.h"
#include "watch/judge/time_limit.h"
#include "watch/stalls/lost_poller.h"
#include "watch/stalls/progress.h"

namespace mprun {
namespace {

constexpr Nanos kLookEvery = 200 * kNanosPerMilli;
// Between samples of a tree that seems to stand still, and of one where only a part does.
constexpr Nanos kSampleEvery = 40 * kNanosPerMilli;
constexpr Nanos kPartSampleEvery = 250 * kNanosPerMilli;
// How long a process must rest while others run, before it is worth a judgement; and the time between such judgements.
constexpr Nanos kRest = kNanosPerSecond;
constexpr Nanos kPartEvery = 2 * kNanosPerSecond;
// While a tree is busy, the samples that find its new threads take only this share of the time.
constexpr Nanos kSampleShare = 1000, kLatestBusySample = 15 * kNanosPerSecond;
// How long all must rest but those that wait for a GIL; and how many looks at that before their interval doubles.
constexpr Nanos kRestAtGil = 400 * kNanosPerMilli;
constexpr int kManyLooksAtGil = 10, kMostDoublingsAtGil = 7;
constexpr Nanos kLongRest = 2 * kNanosPerSecond, kPatienceStep = 100 * kNanosPerMilli,
                kMostPatience = 800 * kNanosPerMilli;
// How often to look whether any thread has got anywhere: a tenth of the time that counts as a stall.
constexpr Nanos kSoonestStallLook = 300 * kNanosPerMilli, kLatestStallLook = 30 * kNanosPerSecond;
// If only the main threads of processes are blocked, their other threads could still do something about it, such as
// ending the process that is waited for. If they have not by then, they are not there for that.
constexpr Nanos kHelpersMayAct = 10 * kNanosPerSecond;
// After this time, mprun reports what would be a deadlock but for a few assumptions.
constexpr Nanos kEarlyStall = 3 * kNanosPerSecond;
// A wait with less time left that has not ended yet is no stall: it will end by itself, on a crowded machine a moment
// late. More time may be as good as none.
constexpr Nanos kLongTimer = 60 * kNanosPerSecond, kLateWakeUp = kNanosPerSecond;
constexpr int kMostTriesAtGil = 30, kMostTriesAtRest = 10;  // a millisecond each
// A tree that only polls uses at most this much of a CPU. It is looked at this often, less if a look is expensive.
constexpr double kMostLoadOfPolls = 0.25;
// A loop takes other ways through the interpreter now and then. Polls that were seen elsewhere for less than this time
// are those that were reported.
constexpr Nanos kElsewhere = 10 * kNanosPerSecond;
// A poll that is caught while it looks around does not show what it waits for.
constexpr int kTriesToName = 4;
constexpr Nanos kPollLookEvery = kNanosPerSecond, kLatestPollLook = 15 * kNanosPerSecond, kPollLookShare = 200;
// A smaller share if a thread spins: that costs more to see, and there is nothing else to do. The smallest until it has
// been seen often enough to count.
constexpr Nanos kSpinLookShare = 30, kFirstSpinLookShare = 10;
// So many children that end badly within that time are no accident.
constexpr std::size_t kManyDeaths = 5;
// The same for a pool, where no child is older.
constexpr Nanos kPoolDeathsWithin = 10 * kNanosPerSecond;

// When to look again after work that began at `began` on our CPU clock. A crowded machine makes it no more expensive.
Nanos pause_after_polls(Nanos began) {
  return std::clamp((read_clock(CLOCK_THREAD_CPUTIME_ID) - began) * kPollLookShare, kPollLookEvery, kLatestPollLook);
}

bool any_thread_runs(const Sample& sample) {
  return std::any_of(sample.threads.begin(), sample.threads.end(),
                     [](const ThreadSample& thread) { return thread.call.running && thread.state != 'Z'; });
}

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

Watcher::Watcher(ProcSource* proc, Tree tree, AskBoundary boundary, CountDeaths deaths, TakeSample taken)
    : proc_(proc),
      tree_(tree),
      boundary_(std::move(boundary)),
      deaths_(std::move(deaths)),
      taken_(std::move(taken)),
      orphaned_(proc),
      lost_helper_([proc](pid_t pid) {
        return has_lost_helper([proc](pid_t one) { return read_python_stacks(proc, one); }, pid);
      }),
      lost_task_([this](pid_t pid) { return has_lost_task(pid); }),
      lost_poller_([proc](pid_t pid) { return waits_for_grpc(proc, pid); }),
      dying_workers_([this](pid_t pid) {
        return lacks_lasting_child(pid) &&
               waits_for_pool([this](pid_t one) { return read_python_stacks(proc_, one); }, pid);
      }),
      spins_(proc),
      polls_(proc) {}

std::unique_ptr<Sample> Watcher::sample_tree() const {
  std::vector<pid_t> ended;
  auto sample = std::make_unique<Sample>(take_sample(proc_, process_tree(proc_, tree_.root, tree_.with_root, &ended)));
  sample->ended = std::move(ended);
  if (taken_) taken_(*sample);
  return sample;
}

void Watcher::sample_again(Nanos now) {
  sample_ = sample_tree();
  activity_.set_threads(*sample_, now);
  orphaned_.consider(*sample_, now);
}

// Looks again at threads that were found running, until they wait.
void Watcher::catch_at_rest(Sample* sample, int tries, const std::function<bool(const ThreadSample&)>& is_wanted) {
  constexpr timespec kPause{0, kNanosPerMilli};
  for (ThreadSample& thread : sample->threads) {
    if (!is_wanted(thread)) continue;
    for (; thread.call.running && thread.state != 'Z' && tries > 0; --tries) {
      nanosleep(&kPause, nullptr);
      if (!sample_thread(proc_, &thread)) sample->whole = false;
    }
  }
}

std::unique_ptr<Sample> Watcher::sample_at_rest() {
  auto sample = sample_tree();
  catch_at_rest(sample.get(), kMostTriesAtRest, [](const ThreadSample&) { return true; });
  return sample;
}

// A running thread of a resting process waits for a GIL, and is just asking for it: looks at it until it waits again.
void Watcher::catch_waiters_for_gil() {
  catch_at_rest(sample_.get(), kMostTriesAtGil,
                [this](const ThreadSample& thread) { return judged_resting_.count(thread.pid) != 0; });
}

Proof Watcher::judge_sample(std::unique_ptr<Sample> sample) {
  Proof proof = mprun::judge_sample(proc_, std::move(sample), boundary_());
  proof.last_moved = last_moved_;
  return proof;
}

std::optional<Proof> Watcher::judge_part(const Sample& before, const Sample& after) {
  auto part = still_part(before, after);
  if (!part) return std::nullopt;
  return judge_sample(std::make_unique<Sample>(std::move(*part)));
}

// Starts to take samples if it is worth it: when no thread moves, or a process has rested for long while others run.
void Watcher::wait_for_rest(Nanos now) {
  const bool look_at_all = now - last_part_ >= kRest;
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
  if (no_thread_moves && ((judged_still_ && !helpers_late) || now - last_moved_ < patience_)) return;
  judged_still_ = false;
  // No thread moves but to ask for a GIL.
  at_gil_ = moved && activity_.all_rest_since(now - kRestAtGil);
  bool part = false;
  if (at_gil_ && now - last_part_ >= kRestAtGil) {
    judged_resting_ = activity_.resting_since(now - kRestAtGil);
    part = true;
    last_part_ = now;
  } else if (moved && !at_gil_ && look_at_all && now - last_part_ >= kPartEvery) {
    std::set<pid_t> resting = activity_.resting_since(now - kRest);
    part = (part_again_ != 0 && now >= part_again_) ||
           !std::includes(judged_resting_.begin(), judged_resting_.end(), resting.begin(), resting.end());
    judged_resting_ = std::move(resting);
    last_part_ = now;
  }
  // Unknown threads were started by known ones, and those have moved.
  if (moved && !part && !activity_.knows_none() && now - last_sample_ < busy_sample_every_) return;
  sample_again(now);
  last_sample_ = now;
  busy_sample_every_ = std::clamp((monotonic_now() - now) * kSampleShare, kPartEvery, kLatestBusySample);
  if (sample_->threads.empty() || (moved && !part)) return;
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
  const auto before = std::move(sample_);
  sample_again(now);
  if (of_part_) catch_waiters_for_gil();
  if (!of_part_ && !stood_still(*before, *sample_)) {
    phase_ = Phase::kResting;
    pending_.reset();
    judged_still_ = false;  // has_moved() sees no move that is older than the last sample
    last_moved_ = now;
    patience_ = std::min(patience_ + kPatienceStep, kMostPatience);
    return std::nullopt;
  }
  auto proof = judge_part(*before, *sample_);
  if (of_part_ && lacks_process(*sample_, process_tree(proc_, tree_.root, tree_.with_root))) proof.reset();
  const bool is_first = phase_ == Phase::kFirst;
  phase_ = Phase::kResting;
  const auto agreed = std::exchange(pending_, std::nullopt);
  judged_still_ = !of_part_ && proof;
  if (!proof) judged_resting_.clear();  // there was no judgement: try again
  if (proof && proof->judgement.stuck.empty()) part_again_ = helpers_until_ = 0;
  if (!proof || proof->judgement.stuck.empty()) return std::nullopt;
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
  part_again_ = other.is_deadlock() ? 0 : now + std::max(kPartEvery, busy_sample_every_);
  find_who_cannot_return(&*proof, now);
  if (other.stuck == reported_ && std::includes(reported_cannot_return_.begin(), reported_cannot_return_.end(),
                                                other.cannot_return.begin(), other.cannot_return.end())) {
    return std::nullopt;
  }
  reported_ = other.stuck;
  reported_cannot_return_ = other.cannot_return;
  proof->verdict = other.is_deadlock() ? HangVerdict::kDeadlock : HangVerdict::kPartialDeadlock;
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
    proof = judge_sample(std::move(sample));
    Judgement& found = proof.judgement;
    found.orphaned = find_orphaned_waits(found, proof.snapshot.get());
    mark_orphaned(&found);
    found.cannot_return = processes_that_cannot_return(found, proof.snapshot.get());
    mark_main_threads(&found);
    for (OrphanedWait& wait : found.orphaned) wait.held_up = found.cannot_return.size();
    return found.orphaned;
  };
  if (!orphaned_.look(sample_tree(), now, judge)) return std::nullopt;
  proof.verdict = HangVerdict::kOrphanedLock;
  auto moves = activity_.last_moves();
  proof.last_moved = 0;
  for (const OrphanedWait& wait : proof.judgement.orphaned) {
    proof.last_moved = std::max(proof.last_moved, moves[wait.tid]);
  }
  return proof;
}

// A shell may run a program that fails again and again until it succeeds: its children are no workers.
bool Watcher::are_many_workers(pid_t parent, const Deaths& dead) const {
  if (dead.forked >= kManyDeaths) return true;
  return dead.all >= kManyDeaths &&
         waits_for_pool([this](pid_t one) { return read_python_stacks(proc_, one); }, parent);
}

// A process whose first thread gets nowhere while its children die one after the other; 0: there is none.
pid_t Watcher::find_respawner(const Sample& sample, Nanos now) const {
  const auto found = std::find_if(sample.threads.begin(), sample.threads.end(), [&](const ThreadSample& thread) {
    return thread.tid == thread.pid && stall_.of_thread(thread.tid, now) >= tree_.stall &&
           are_many_workers(thread.pid, deaths_(thread.pid, now - tree_.stall));
  });
  return found == sample.threads.end() ? 0 : found->pid;
}

// How long until the threads have woken up that wait for the first time at their places, and not for long. Those of
// libev and of a Java virtual machine wake up to look around, even if nothing is to happen, and so do the threads that
// libraries start in a process with Python.
Nanos Watcher::time_of_timers(const Sample& sample, Nanos now) const {
  TreeSnapshot snapshot(proc_, &sample, {});
  Nanos longest = 0;
  for (const ThreadSample& thread : sample.threads) {
    if (thread.state != 'S' || stall_.has_woken(thread.tid) || is_idle_libev(thread)) continue;
    const Nanos left = time_left(thread, stall_.of_thread(thread.tid, now), &snapshot).value_or(0);
    if (left <= longest || left >= kLongTimer || snapshot.jvm(thread.pid) != nullptr) continue;
    if (!is_of_library(proc_, thread)) longest = left;
  }
  return longest;
}

// Its children end badly one after the other, and none of those that live is old.
bool Watcher::lacks_lasting_child(pid_t pid) const {
  if (deaths_(pid, monotonic_now() - kPoolDeathsWithin).all < kManyDeaths) return false;
  const auto below = process_tree(proc_, pid, false);
  return std::all_of(below.begin(), below.end(), [this](pid_t child) {
    const std::string folder = std::to_string(child);
    const auto text = proc_->read(folder + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat || age_of(*stat) < kPoolDeathsWithin) return true;
    return proc_->read(folder + "/cmdline").value_or("").find("multiprocessing.resource_tracker") != std::string::npos;
  });
}

std::optional<Proof> Watcher::find_stall(Nanos now) {
  const Nanos every = std::clamp(tree_.stall / 10, kSoonestStallLook, kLatestStallLook);
  if (tree_.stall == 0 || now - last_stall_look_ < every) return std::nullopt;
  const Nanos apart = now - std::exchange(last_stall_look_, now);
  auto sample = activity_.load() <= kMostLoadOfPolls ? sample_at_rest() : sample_tree();
  Progress progress(proc_);
  stall_.take(without_reactors(proc_, *sample), now,
              [&progress](const ThreadSample& thread) { return progress.of(thread); });
  const auto before = std::exchange(stall_sample_, std::move(sample));
  const Nanos stood = stall_.of_all(now);
  const pid_t respawner = find_respawner(*stall_sample_, now);
  const bool stalled = stood >= tree_.stall || respawner != 0;
  if (!stalled || stall_reported_ || !before) {
    stall_reported_ = stalled && stall_reported_;
    return std::nullopt;
  }
  if (respawner == 0 && now < no_stall_before_) return std::nullopt;
  if (const Nanos left = respawner != 0 ? 0 : time_of_timers(*stall_sample_, now); left != 0) {
    no_stall_before_ = now + left + kLateWakeUp;
    return std::nullopt;
  }
  auto proof = judge_part(*before, *stall_sample_);
  if (!proof || proof->judgement.is_deadlock()) return std::nullopt;  // a proof says more
  auto wakeups = wakeups_between(*before, *stall_sample_, apart);
  Assumptions assumptions = assumptions_after_stall();
  assumptions.child_polls = polls_.child_polls();
  std::optional<Proof> named = judge_assuming(std::make_unique<Sample>(*stall_sample_), assumptions);
  for (int i = 0; i < kTriesToName && !named; ++i) {
    named = judge_assuming(sample_at_rest(), assumptions);
  }
  const pid_t lost_task = find_lost_task_now(now), lost_poller = find_lost_poller_now(*stall_sample_);
  if (named && lost_task == 0 && lost_poller == 0) proof = std::move(named);  // else they say more
  stall_reported_ = true;
  proof->lost_task = lost_task;
  proof->lost_poller = lost_poller;
  proof->verdict = HangVerdict::kStalled;
  proof->wakeups = std::move(wakeups);
  proof->respawner = respawner;
  proof->last_moved = now - std::max(stood, tree_.stall);
  return proof;
}

Assumptions Watcher::early_assumptions() const {
  Assumptions assumptions = assumptions_before(tree_.stall);
  assumptions.stopped_stay_stopped = tree_.stops_last;
  return assumptions;
}

std::optional<Proof> Watcher::judge_assuming(std::unique_ptr<Sample> sample, Assumptions assumptions) {
  return mprun::judge_assuming(proc_, std::move(sample), boundary_(), std::move(assumptions));
}

std::optional<Proof> Watcher::find_early_stall(Nanos now) {
  if (tree_.stall == 0 || phase_ != Phase::kResting || !reported_.empty()) return std::nullopt;
  if (!judged_still_) {
    auto polling = find_polling_stall(now);
    return polling ? std::move(polling) : find_spinning_stall(now);
  }
  if (tree_.stall <= kEarlyStall || now - last_moved_ < kEarlyStall || judged_with_assumptions_ == last_moved_)
    return std::nullopt;
  judged_with_assumptions_ = last_moved_;
  auto proof = judge_assuming(sample_tree(), early_assumptions());
  if (!proof) return std::nullopt;
  proof->is_early = true;
  proof->last_moved = last_moved_;
  return proof;
}

// All threads that still run do so to look around and wait again.
std::optional<Proof> Watcher::find_polling_stall(Nanos now) {
  if (now < next_poll_look_) return std::nullopt;
  next_poll_look_ = now + kPollLookEvery;
  if (activity_.load() > kMostLoadOfPolls) return std::nullopt;
  const Nanos began = read_clock(CLOCK_THREAD_CPUTIME_ID);
  auto sample = sample_at_rest();
  polls_.take(*sample, now);
  const Nanos since = polls_.since(now);
  next_poll_look_ = now + pause_after_polls(began);
  if (auto proof = find_lost_poller(*sample, now)) return proof;
  const auto part = still_part(std::exchange(poll_sample_, *sample), *sample);
  const bool is_early = tree_.stall > kEarlyStall && since != 0 && now - since >= kEarlyStall;
  if (since != 0 && since == reported_polls_.since) polls_went_on_ = now;
  if (!is_early || !part || since == reported_polls_.since) return std::nullopt;
  PollState state{since, polls_.polls(), polls_.child_polls(), {}};
  for (const ThreadSample& thread : part->threads) {
    const bool polls = state.polls.count(thread.tid) != 0 || state.child_polls.count(thread.tid) != 0;
    if (thread.moved && !polls) state.ran.insert(thread.tid);
  }
  if (state == judged_polls_) return std::nullopt;
  judged_polls_ = state;
  if (state.is_like(reported_polls_) && since - polls_went_on_ < kElsewhere) {
    reported_polls_.since = since;
    return std::nullopt;
  }
  if (find_lost_poller_now(*sample) != 0) return std::nullopt;  // which is reported soon
  Assumptions assumptions = early_assumptions();
  assumptions.polls = std::move(state.polls);
  assumptions.child_polls = std::move(state.child_polls);
  auto proof = judge_assuming(std::make_unique<Sample>(*part), std::move(assumptions));
  next_poll_look_ = now + pause_after_polls(began);
  if (!proof) return std::nullopt;
  reported_polls_ = judged_polls_;
  proof->is_early = true;
  proof->last_moved = since;
  return proof;
}

// All threads that burn a CPU do so in calls that only wait.
std::optional<Proof> Watcher::find_spinning_stall(Nanos now) {
  if (now < next_spin_look_) return std::nullopt;
  // On a crowded machine, a thread that spins gets no more of a CPU than others need to poll.
  if (activity_.load() <= kMostLoadOfPolls && !any_thread_runs(poll_sample_)) return std::nullopt;
  auto sample = sample_tree();
  spins_.take(*sample, now);
  const Nanos since = spins_.since();
  const Nanos share = spins_.spins().empty() ? kPollLookShare : since == 0 ? kFirstSpinLookShare : kSpinLookShare;
  next_spin_look_ = now + std::clamp((monotonic_now() - now) * share, kPollLookEvery, kLatestPollLook);
  const auto part = still_part(std::exchange(spin_sample_, *sample), *sample);
  if (since == 0 || now - since < kEarlyStall || !part) return std::nullopt;
  const bool is_early = now - since < tree_.stall;
  const Nanos judged = is_early ? since : since + tree_.stall;
  if (judged == judged_spins_ || (is_early && spins_.spins() == reported_spins_)) return std::nullopt;
  judged_spins_ = judged;
  Assumptions assumptions = early_assumptions();
  assumptions.spins = spins_.spins();
  auto proof = judge_assuming(std::make_unique<Sample>(*part), std::move(assumptions));
  if (!proof) return std::nullopt;
  reported_spins_ = spins_.spins();
  proof->is_early = is_early;
  proof->last_moved = since;
  return proof;
}

// Processes of which a child has died, and whose main thread has waited ever since something was last reported, for so
// long that what is proved of it would have been reported.
std::set<pid_t> Watcher::may_have_lost_task(Nanos now) const {
  const auto moves = activity_.last_moves();
  std::set<pid_t> found = activity_.with_resting_main_since(now - kRest);
  std::erase_if(found, [&](pid_t pid) { return moves.at(pid) <= last_found_ || deaths_(pid, 0).all == 0; });
  return found;
}

bool Watcher::has_lost_task(pid_t pid) const {
  const Sample sample = take_sample(proc_, {pid});
  if (sample.threads.empty() || without_limit(sample.threads.front())) return false;
  return mprun::has_lost_task([this](pid_t one) { return read_python_stacks(proc_, one); }, pid,
                              process_tree(proc_, pid, false));
}

pid_t Watcher::find_lost_task_now(Nanos now) const {
  const std::set<pid_t> processes = may_have_lost_task(now);
  const auto found = std::find_if(processes.begin(), processes.end(), [this](pid_t pid) { return has_lost_task(pid); });
  return found == processes.end() ? 0 : *found;
}

// Early, and again when it has lasted for `stall`. 0: none.
pid_t Watcher::find_lost_task(Nanos now) {
  const std::set<pid_t> processes = may_have_lost_task(now);
  const auto moves = activity_.last_moves();
  const auto is_long = [&](pid_t pid) { return now - moves.at(pid) >= tree_.stall; };
  std::erase_if(lost_tasks_, [&](pid_t pid) { return processes.count(pid) == 0; });
  const pid_t found = lost_task_.look(processes, now);
  if (found != 0 && !is_long(found)) lost_tasks_.insert(found);
  if (found != 0) return found;
  const auto late = std::find_if(lost_tasks_.begin(), lost_tasks_.end(), is_long);
  if (late == lost_tasks_.end()) return 0;
  const pid_t pid = lost_tasks_.extract(late).value();
  return has_lost_task(pid) ? pid : 0;
}

Proof Watcher::as_stall(std::unique_ptr<Sample> sample) {
  Proof proof = judge_sample(std::move(sample));
  for (JudgedThread& thread : proof.judgement.threads) thread.live = true;  // one sample proves nothing
  proof.judgement.stuck.clear();
  proof.verdict = HangVerdict::kStalled;
  return proof;
}

pid_t Watcher::find_lost_poller_now(const Sample& sample) const {
  const std::set<pid_t> processes = processes_that_poll_nothing(sample);
  const auto found =
      std::find_if(processes.begin(), processes.end(), [this](pid_t pid) { return waits_for_grpc(proc_, pid); });
  return found == processes.end() ? 0 : *found;
}

std::optional<Proof> Watcher::find_lost_poller(const Sample& sample, Nanos now) {
  const pid_t found = lost_poller_.look(processes_that_poll_nothing(sample), now);
  if (found == 0) return std::nullopt;
  Proof proof = as_stall(std::make_unique<Sample>(sample));
  const TreeSnapshot::Process* process = proof.snapshot->process(found);
  if (process == nullptr || !process->forked) return std::nullopt;
  proof.lost_poller = found;
  proof.is_early = tree_.stall > kEarlyStall;
  proof.last_moved = 0;
  return proof;
}

// Reported as a stall, because the threads that go on could do anything.
std::optional<Proof> Watcher::find_lost_result(Nanos now) {
  if (tree_.stall == 0 || now - last_result_look_ < kNanosPerSecond) return std::nullopt;
  last_result_look_ = now;
  const std::set<pid_t> beside_main = activity_.run_beside_main_since(now - kRest);
  const pid_t helper = lost_helper_.look(beside_main, now);
  const pid_t dying = helper != 0 ? 0 : dying_workers_.look(beside_main, now);
  const pid_t task = helper != 0 || dying != 0 ? 0 : find_lost_task(now);
  const pid_t found = helper != 0 ? helper : dying;
  if (found == 0 && task == 0) return std::nullopt;
  Proof proof = as_stall(sample_tree());
  proof.respawner = dying;
  proof.lost_helper = helper;
  proof.lost_task = task;
  // The next worker may find what the others lacked.
  proof.is_early = lost_tasks_.count(task) != 0 || (dying != 0 && tree_.stall > kEarlyStall);
  proof.last_moved = found == 0 ? 0 : activity_.last_moves()[found];  // of its main thread, which waits for the pool
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
  if (next_look_ != 0 && now - next_look_ >= kStoppedAfter)
    stall_ = {};  // we were stopped: perhaps all others were, too
  auto proof = find_proof(now);
  if (!proof) proof = find_orphaned_lock(now);
  if (!proof) proof = find_early_stall(now);
  if (!proof) proof = find_lost_result(now);
  return proof ? std::move(proof) : find_stall(now);
}

}  // namespace mprun
