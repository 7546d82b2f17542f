// SpinWatch: reports that all threads that burn a CPU do so in calls that only wait, if what they wait for must come
// from stuck threads: early, and again as a stall. Lives in the watcher.
#pragma once

#include "watch/stalls/spins.h"
#include "watch/unawaited_parts.h"
#include "watch/watched_tree.h"

namespace mprun {

class SpinWatch {
 public:
  /// `tree` must outlive it.
  explicit SpinWatch(const WatchedTree* tree) : tree_(tree), spins_(tree->proc()) {}

  [[nodiscard]] std::optional<Proof> look(Nanos now);

 private:
  const WatchedTree* tree_;
  SpinMeter spins_;
  Nanos next_look_ = 0, judged_ = 0;       ///< judged: since when they spun, or when that became a stall
  std::map<pid_t, std::string> reported_;  ///< the last that were reported early: a look that missed one is no news
  Sample sample_;                          ///< the last that `spins_` was given
  UnawaitedParts unawaited_;
};

}  // namespace mprun
