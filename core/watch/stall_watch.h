// StallWatch: finds what nothing proves and yet gets nowhere. A stall is reported when no thread has got anywhere for
// as long as the user allows; early, within seconds, when only a few assumptions are missing for a proof. Lives in the
// watcher, which asks it when it has found no proof.
#pragma once

#include "watch/lost_result_watch.h"
#include "watch/poll_watch.h"
#include "watch/spin_watch.h"
#include "watch/stalls/stall.h"
#include "watch/unawaited_parts.h"

namespace mprun {

class StallWatch {
 public:
  /// What the watcher knows of the tree.
  struct Standing {
    bool proved_nothing = false;    ///< but what may be idle, and takes no samples for a proof just now
    bool judged_still = false;      ///< no thread has moved since the tree was judged
    const std::set<pid_t>& proved;  ///< the processes that are proved stuck, and may be idle
    Nanos last_moved = 0;
    Nanos last_found = 0;  ///< when anything but a lost task was last reported
  };

  /// `tree` must outlive it.
  explicit StallWatch(const WatchedTree* tree);

  [[nodiscard]] std::optional<Proof> look(const ActivityMeter& activity, const Standing& standing, Nanos now);
  /// The same for a part of which nothing was proved in this sample but for the processes `proved`, while others run:
  /// stuck for a few seconds but for some assumptions.
  [[nodiscard]] std::optional<Proof> look_at_part(const Sample& sample, const std::set<pid_t>& proved, Nanos now);
  /// Counts anew from now, for how long no thread has got anywhere.
  void start_again() { stall_ = {}; }

 private:
  [[nodiscard]] std::optional<Proof> find_early(const ActivityMeter& activity, const Standing& standing, Nanos now);
  [[nodiscard]] std::optional<Proof> find_late(const ActivityMeter& activity, const Standing& standing, Nanos now);
  [[nodiscard]] bool is_of_lost_task(const Proof& proof, const ActivityMeter& activity) const;
  void take(const ActivityMeter& activity, Nanos now);
  [[nodiscard]] std::optional<Proof> judge_late(const Sample& before, pid_t lost_task) const;
  [[nodiscard]] bool are_many_workers(pid_t parent, const WatchedTree::Deaths& dead) const;
  [[nodiscard]] pid_t find_respawner(Nanos now) const;
  [[nodiscard]] std::optional<Nanos> time_of_timers(Nanos now) const;

  const WatchedTree* tree_;
  PollWatch polls_;
  SpinWatch spins_;
  LostResultWatch lost_results_;
  StallMeter stall_;
  std::unique_ptr<Sample> sample_;  ///< the last that `stall_` was given
  std::unique_ptr<Sample> first_;   ///< the first since anything has moved, taken at `first_at_`
  Nanos first_at_ = 0;
  bool timers_were_late_ = false;  ///< since `first_at_`, a thread has not woken up when its time was up
  bool reported_ = false;
  Nanos last_look_ = 0;
  Nanos not_before_ = 0;             ///< threads wait for timers until then
  Nanos judged_early_ = 0;           ///< when a tree that stands still was last judged
  Nanos reported_early_ = 0;         ///< the last move before the last report of one
  struct Part {                      ///< for look_at_part()
    std::unique_ptr<Sample> sample;  ///< the last one, of `taken`
    Nanos taken = 0;
    std::set<pid_t> stuck;  ///< the processes that were stuck in it, and since when
    Nanos since = 0;
    int reports = 0;  ///< how often they were reported
  };
  Part part_;
  UnawaitedParts unawaited_;
  std::pair<pid_t, Nanos> lost_task_;  ///< the last process of which one was reported, and when
};

}  // namespace mprun
