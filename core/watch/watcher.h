// Watcher: watches one tree of processes. At every look it decides whether the tree, or a part of it, can never move
// again. While threads run, a look costs one pread (activity.h). When none has run for a while, or a process has rested
// while others ran, it takes samples: three whose still parts agree (sample.h), each pair judged, make a proof.
// orphaned_lock_watch.h finds threads that are stuck in a process that runs, stall_watch.h what nothing proves. Called
// from the supervisor's own loop; has no thread and writes nothing into a watched process.
#pragma once

#include "base/clock.h"
#include "watch/judge/orphaned_lock_watch.h"
#include "watch/sample/activity.h"
#include "watch/stall_watch.h"
#include "watch/time_share.h"
#include "watch/watched_tree.h"

namespace mprun {

class Watcher {
 public:
  /// `boundary` is called for every judgement, `taken` for every sample; `proc` must outlive the watcher.
  Watcher(ProcSource* proc, WatchedTree::Options tree, WatchedTree::AskBoundary boundary,
          WatchedTree::CountDeaths deaths, WatchedTree::TakeSample taken = {});
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// When to look again, monotonic.
  [[nodiscard]] Nanos next_look() const { return next_look_; }
  /// Looks. Returns a proof once, and again when it has changed, including when it has come to cover processes that
  /// could go on at first.
  [[nodiscard]] std::optional<Proof> look(Nanos now);
  /// What look() returned may be idle, so nothing was said of it: other things may yet be found.
  void note_idle() { idle_ = reported_; }

 private:
  enum class Phase {
    kResting,  ///< until a look shows that samples are worth taking
    kFirst,    ///< one sample taken
    kSecond,   ///< two that agree; what they prove is in pending_
  };
  [[nodiscard]] bool is_one_unjudged(const std::set<pid_t>& resting) const;
  void wait_for_rest(Nanos now);
  void sample_again(Nanos now);
  [[nodiscard]] Nanos sample_every() const;
  [[nodiscard]] std::optional<Proof> find_any(Nanos now);
  [[nodiscard]] std::optional<Proof> find_proof(Nanos now);
  void find_who_cannot_return(Proof* proof, Nanos now);
  [[nodiscard]] bool is_reported(const Judgement& judgement) const;
  [[nodiscard]] bool reported_nothing() const { return reported_ == idle_; }
  [[nodiscard]] std::optional<Proof> find_lasting(std::optional<Proof> proof, Nanos now);
  [[nodiscard]] std::optional<Proof> find_orphaned_lock(Nanos now);

  WatchedTree tree_;
  ActivityMeter activity_;
  OrphanedLockWatch orphaned_;
  StallWatch stalls_;
  TimeShare parts_, busy_samples_, again_;
  Phase phase_ = Phase::kResting;
  bool of_part_ = false;            ///< others run meanwhile
  bool at_gil_ = false;             ///< they only ask for a GIL
  int gil_looks_ = 0;               ///< looks in a row at which the thread that had run only wanted a GIL
  Nanos next_gil_look_ = 0;         ///< when to ask for that again
  bool judged_still_ = false;       ///< no thread has moved since the last judgement
  std::set<pid_t> judged_resting_;  ///< processes that rested when a part was judged
  std::unique_ptr<Sample> sample_;
  std::optional<Proof> pending_;
  std::set<pid_t> reported_, reported_cannot_return_;  ///< the processes of the last reported proof
  std::set<pid_t> idle_;                               ///< `reported_`, if it may be idle
  Nanos reported_at_ = 0;                              ///< when; 0: it was reported again as a stall, or there is none
  Nanos judged_at_ = 0;                                ///< when the first sample of the last judgement was taken
  std::set<pid_t> up_to_helpers_;  ///< processes that cannot return unless their other threads do something
  Nanos helpers_until_ = 0;        ///< they have time until then; 0: no longer
  Nanos next_look_ = 0, last_moved_ = 0, last_part_ = 0;
  Nanos last_found_ = 0;  ///< when anything but a lost task was last reported
  Nanos patience_ = 0;    ///< how long no thread must have moved before samples are taken
};

}  // namespace mprun
