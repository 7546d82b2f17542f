// PoolCallbackWatch: finds processes whose multiprocessing.Pool has a callback that waits for ever. The pool takes no
// result meanwhile, so its thread that replaces workers is woken by results all the time: the process never rests, and
// nothing is proved of it. Reported as a stall, which assumes that this thread lets no other one go on. Lives in
// LostResultWatch.
#pragma once

#include "watch/stalls/suspects.h"
#include "watch/unawaited_parts.h"
#include "watch/watched_tree.h"

namespace mprun {

class PoolCallbackWatch {
 public:
  /// `tree` must outlive it.
  explicit PoolCallbackWatch(const WatchedTree* tree);

  /// `processes`: those whose main thread has rested for a while as others ran; `moves`: of each thread, when it ran
  /// last. What is found is reported early, and again when it has lasted for as long as a stall.
  [[nodiscard]] std::optional<Proof> look(const std::set<pid_t>& processes, const std::map<pid_t, Nanos>& moves,
                                          Nanos now);

 private:
  [[nodiscard]] std::optional<Proof> judge(pid_t pid);

  const WatchedTree* tree_;
  Suspects suspects_;
  std::map<pid_t, Sample> samples_;  ///< by process, as of its last look; of those that wait so
  std::set<pid_t> reported_early_;
  UnawaitedParts unawaited_;
};

}  // namespace mprun
