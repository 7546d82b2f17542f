// Watcher: watches one tree of processes. At every look it decides whether the tree, or a part of it, can never move
// again. While threads run, a look costs one pread (activity.h). When none has run for a while, or a process has rested
// while others ran, it takes samples: three whose still parts agree (sample.h), each pair judged, make a proof.
// orphaned_lock_watch.h finds threads that are stuck in a process that runs. Called from the supervisor's own loop; has
// no thread and writes nothing into a watched process.
#pragma once

#include "base/clock.h"
#include "watch/judge/orphaned_lock_watch.h"
#include "watch/proof.h"
#include "watch/sample/activity.h"
#include "watch/stalls/lost_result.h"
#include "watch/stalls/polls.h"
#include "watch/stalls/spins.h"
#include "watch/stalls/stall.h"

namespace mprun {

class Watcher {
 public:
  struct Tree {
    pid_t root = 0;
    bool with_root = false;   ///< false: the descendants of `root` alone
    Nanos stall = 0;          ///< report a stall when no thread has got anywhere for so long; 0: never
    bool stops_last = false;  ///< report early what waits for a stopped process; else it may be continued soon
  };
  using AskBoundary = std::function<TreeBoundary()>;
  /// How many children of a process ended badly since `when` (monotonic); `forked`: those that ran what it runs.
  struct Deaths {
    std::size_t all = 0, forked = 0;
  };
  using CountDeaths = std::function<Deaths(pid_t parent, Nanos when)>;

  using TakeSample = std::function<void(const Sample&)>;

  /// `boundary` is called for every judgement, `taken` for every sample; `proc` must outlive the watcher.
  Watcher(ProcSource* proc, Tree tree, AskBoundary boundary, CountDeaths deaths, TakeSample taken = {});

  /// When to look again, monotonic.
  [[nodiscard]] Nanos next_look() const { return next_look_; }
  /// Looks. Returns a proof once, and again when it has changed, including when it has come to cover processes that
  /// could go on at first.
  [[nodiscard]] std::optional<Proof> look(Nanos now);

 private:
  enum class Phase {
    kResting,  ///< until a look shows that samples are worth taking
    kFirst,    ///< one sample taken
    kSecond,   ///< two that agree; what they prove is in pending_
  };
  [[nodiscard]] std::unique_ptr<Sample> sample_tree() const;
  void wait_for_rest(Nanos now);
  void sample_again(Nanos now);
  void catch_at_rest(Sample* sample, int tries, const std::function<bool(const ThreadSample&)>& is_wanted);
  [[nodiscard]] std::unique_ptr<Sample> sample_at_rest();
  void catch_waiters_for_gil();
  [[nodiscard]] Nanos sample_every() const;
  [[nodiscard]] Proof judge_sample(std::unique_ptr<Sample> sample);
  [[nodiscard]] std::optional<Proof> judge_part(const Sample& before, const Sample& after);
  [[nodiscard]] std::optional<Proof> find_any(Nanos now);
  [[nodiscard]] std::optional<Proof> find_proof(Nanos now);
  void find_who_cannot_return(Proof* proof, Nanos now);
  [[nodiscard]] std::optional<Proof> find_orphaned_lock(Nanos now);
  [[nodiscard]] std::optional<Proof> find_stall(Nanos now);
  [[nodiscard]] Assumptions early_assumptions() const;
  [[nodiscard]] std::optional<Proof> judge_assuming(std::unique_ptr<Sample> sample, Assumptions assumptions);
  [[nodiscard]] std::optional<Proof> find_early_stall(Nanos now);
  [[nodiscard]] std::optional<Proof> find_polling_stall(Nanos now);
  [[nodiscard]] std::optional<Proof> find_spinning_stall(Nanos now);
  [[nodiscard]] std::optional<Proof> find_lost_result(Nanos now);
  [[nodiscard]] pid_t find_lost_poller_now(const Sample& sample) const;
  [[nodiscard]] std::optional<Proof> find_lost_poller(const Sample& sample, Nanos now);
  [[nodiscard]] Proof as_stall(std::unique_ptr<Sample> sample);
  [[nodiscard]] std::set<pid_t> may_have_lost_task(Nanos now) const;
  [[nodiscard]] bool has_lost_task(pid_t pid) const;
  [[nodiscard]] pid_t find_lost_task_now(Nanos now) const;
  [[nodiscard]] pid_t find_lost_task(Nanos now);
  [[nodiscard]] bool are_many_workers(pid_t parent, const Deaths& dead) const;
  [[nodiscard]] pid_t find_respawner(const Sample& sample, Nanos now) const;
  [[nodiscard]] Nanos time_of_timers(const Sample& sample, Nanos now) const;
  [[nodiscard]] bool lacks_lasting_child(pid_t pid) const;

  ProcSource* proc_;
  Tree tree_;
  AskBoundary boundary_;
  CountDeaths deaths_;
  TakeSample taken_;
  ActivityMeter activity_;
  Phase phase_ = Phase::kResting;
  bool of_part_ = false;            ///< others run meanwhile
  bool at_gil_ = false;             ///< they only ask for a GIL
  int gil_looks_ = 0;               ///< looks in a row at which the thread that had run only wanted a GIL
  Nanos busy_sample_every_ = 0;     ///< as the cost of a sample allows
  Nanos next_gil_look_ = 0;         ///< when to ask for that again
  bool judged_still_ = false;       ///< no thread has moved since the last judgement
  std::set<pid_t> judged_resting_;  ///< processes that rested when a part was judged
  std::unique_ptr<Sample> sample_;
  std::unique_ptr<Sample> stall_sample_;
  OrphanedLockWatch orphaned_;
  LostResultWatch lost_helper_, lost_task_, lost_poller_, dying_workers_;
  Nanos last_result_look_ = 0;
  std::set<pid_t> lost_tasks_;  ///< processes that were reported early
  Nanos last_found_ = 0;        ///< when something else was last found
  StallMeter stall_;
  bool stall_reported_ = false;
  Nanos no_stall_before_ = 0;          ///< threads wait for timers until then
  Nanos judged_with_assumptions_ = 0;  ///< the last move before that
  SpinMeter spins_;
  Nanos next_spin_look_ = 0, judged_spins_ = 0;  ///< judged: since when they spun, or when that became a stall
  std::map<pid_t, std::string>
      reported_spins_;  ///< the last that were reported early: a look that missed one is no news
  Sample spin_sample_;  ///< the last that `spins_` was given
  PollMeter polls_;
  Nanos next_poll_look_ = 0;
  Sample poll_sample_;  ///< the last that `polls_` was given
  struct PollState {
    Nanos since = 0;  ///< all threads are where they are
    std::set<pid_t> polls;
    std::map<pid_t, pid_t> child_polls;
    std::set<pid_t> ran;  ///< between the last two samples, and it was no poll
    bool operator==(const PollState&) const = default;
    [[nodiscard]] bool is_like(PollState other) const {
      other.since = since;
      return *this == other;
    }
  };
  PollState judged_polls_;
  PollState reported_polls_;  ///< the last that was found stuck
  Nanos polls_went_on_ = 0;   ///< when these were last seen
  std::optional<Proof> pending_;
  std::set<pid_t> reported_, reported_cannot_return_;  ///< the processes of the last reported proof
  Nanos part_again_ = 0;  ///< when a stuck part is judged again, for processes that wait for it; 0: none is stuck
  std::set<pid_t> up_to_helpers_;  ///< processes that cannot return unless their other threads do something
  Nanos helpers_until_ = 0;        ///< they have time until then; 0: no longer
  Nanos next_look_ = 0, last_moved_ = 0, last_part_ = 0, last_sample_ = 0, last_stall_look_ = 0;
  Nanos patience_ = 0;  ///< how long no thread must have moved before samples are taken
};

}  // namespace mprun
