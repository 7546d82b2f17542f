// LostResultWatch: finds processes whose main thread waits for a result of a multiprocessing.Pool that will never come,
// while other threads go on, so that the tree never stands still and nothing is proved:
//  - the pool's thread for results is lost, or is in a callback that waits for ever;
//  - all workers die as soon as they start;
//  - a task was lost with its worker: the pool and all its workers have nothing to do.
// Reported as stalls, because the threads that go on could do anything. Lives in the watcher.
#pragma once

#include "watch/pool_callback_watch.h"
#include "watch/sample/activity.h"
#include "watch/stalls/suspects.h"
#include "watch/watched_tree.h"

namespace mprun {

class LostResultWatch {
 public:
  /// `tree` must outlive it.
  explicit LostResultWatch(const WatchedTree* tree);

  /// `last_found`: when anything else was last reported.
  [[nodiscard]] std::optional<Proof> look(const ActivityMeter& activity, Nanos last_found, Nanos now);
  /// A process whose pool has lost a task, as one look shows; 0: none.
  [[nodiscard]] pid_t find_lost_task_now(const ActivityMeter& activity, Nanos last_found, Nanos now) const;

 private:
  [[nodiscard]] bool lacks_lasting_child(pid_t pid) const;
  [[nodiscard]] bool replaces_dying_workers(pid_t pid) const;
  [[nodiscard]] std::set<pid_t> with_many_deaths(Nanos now) const;
  [[nodiscard]] bool has_lost_task(pid_t pid) const;
  [[nodiscard]] std::set<pid_t> may_have_lost_task(const ActivityMeter& activity, Nanos last_found, Nanos now) const;
  [[nodiscard]] pid_t find_lost_task(const ActivityMeter& activity, Nanos last_found, Nanos now);

  const WatchedTree* tree_;
  Suspects lost_helpers_, lost_tasks_, dying_workers_;
  PoolCallbackWatch callbacks_;
  Nanos last_look_ = 0;
  std::map<pid_t, Nanos> moves_;    ///< of each thread, when it was last seen to have run
  std::set<pid_t> reported_early_;  ///< processes that have lost a task
};

}  // namespace mprun
