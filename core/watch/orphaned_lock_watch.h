// OrphanedLockWatch: when it is worth to look for orphaned locks in a tree of which others run, and when they are
// proved: three samples, a second apart from each other, between which the threads concerned did not run, and two
// judgements that agree on the mutex and its owner. Lives in the watcher, which gives it every sample that it has taken
// anyway: costs nothing while no thread waits for a mutex, and one read of memory for each that does.
#pragma once

#include <functional>
#include <tuple>

#include "base/clock.h"
#include "watch/orphaned_lock.h"

namespace mprun {

class OrphanedLockWatch {
 public:
  explicit OrphanedLockWatch(ProcSource* proc) : proc_(proc) {}

  /// Starts a proof if a thread of `sample` waits for a mutex whose owner has ended or waits so itself.
  void consider(const Sample& sample, Nanos now);
  /// A proof goes on, and it is time for its next sample: call look().
  [[nodiscard]] bool is_due(Nanos now) const { return before_ != nullptr && now >= due_; }
  /// The waits that the judgement of `sample` finds. In `sample` those threads count as moved that were not blocked all
  /// the time since the one before.
  using Judge = std::function<std::vector<OrphanedWait>(std::unique_ptr<Sample> sample)>;
  /// True: what `judge` has found last is proved, and was not told before, or holds up more processes by now.
  [[nodiscard]] bool look(std::unique_ptr<Sample> sample, Nanos now, const Judge& judge);

 private:
  using Key = std::tuple<pid_t, std::uint64_t, pid_t>;  // thread, mutex, owner
  [[nodiscard]] std::set<Key> suspects_of(const Sample& sample) const;
  void drop() { before_.reset(); }

  ProcSource* proc_;
  std::unique_ptr<Sample> before_;    // nullptr: no proof goes on
  std::vector<OrphanedWait> agreed_;  // what the first judgement found; empty: there was none yet
  int tries_ = 0;                     // samples that were not whole
  Nanos due_ = 0, again_ = 0;
  std::set<Key>
      suspects_;  // of the proof that goes on, or of the last one; judged again when they change, or at again_
  std::map<Key, std::size_t> told_;  // and how many processes it held up
};

}  // namespace mprun
