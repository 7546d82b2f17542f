// OrphanedLockWatch: decides when to look for orphaned locks in a tree of which others run, and when they are proved. A
// proof takes three samples, 0.3 s apart, between which the threads concerned did not run, and two judgements that
// agree on the lock and its owner. Lives in the watcher, which passes it every sample that it takes anyway. Costs
// nothing while no thread waits for a mutex or in pthread_join(), and one read of memory for each that does.
#pragma once

#include <functional>
#include <tuple>

#include "base/clock.h"
#include "watch/judge/orphaned_lock.h"

namespace mprun {

class OrphanedLockWatch {
 public:
  explicit OrphanedLockWatch(ProcSource* proc) : proc_(proc) {}

  /// Starts a proof if a thread of `sample` waits for a mutex whose owner has ended; or if it waits for a mutex, or in
  /// pthread_join(), and the other thread waits in one of these ways too, or may want the GIL.
  void consider(const Sample& sample, Nanos now);
  /// A thread waits for a lock that seems orphaned: a proof is in progress.
  [[nodiscard]] bool suspects() const { return before_ != nullptr; }
  /// True if a thread waits for this one in the proof that is in progress.
  [[nodiscard]] bool is_awaited(pid_t tid) const;
  /// True if a proof is in progress and its next sample is due: call look().
  [[nodiscard]] bool is_due(Nanos now) const { return before_ != nullptr && now >= due_; }
  /// Returns the waits that the judgement of `sample` finds. Threads in `sample` count as moved if they were not
  /// blocked all the time since the previous sample, as one does that waits for the GIL.
  using Judge = std::function<std::vector<OrphanedWait>(std::unique_ptr<Sample> sample)>;
  /// True: what `judge` found last is proved, and was not reported before, or holds up more processes by now.
  [[nodiscard]] bool look(std::unique_ptr<Sample> sample, Nanos now, const Judge& judge);

 private:
  using Key = std::tuple<pid_t, std::uint64_t, pid_t>;  // thread, mutex, owner
  [[nodiscard]] std::set<Key> suspects_of(const Sample& sample) const;
  void drop() { before_.reset(); }

  ProcSource* proc_;
  std::unique_ptr<Sample> before_;    // nullptr: no proof is in progress
  std::vector<OrphanedWait> agreed_;  // what the first judgement found; empty: there was none yet
  int tries_ = 0;                     // samples that were not whole
  Nanos due_ = 0, again_ = 0;
  std::set<Key> suspects_;  // of the current or the last proof; judged again when they change, or at again_
  std::map<Key, std::size_t> reported_;  // and how many processes each held up
};

}  // namespace mprun
