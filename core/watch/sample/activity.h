// ActivityMeter: has any known thread run since the last look? The watch asks this cheap question while a tree is busy:
// one pread of an open file per thread, and usually only until the first thread that has run. Lives in the supervisor;
// owns one descriptor for each of the first kMostOpen threads, fewer where descriptors are scarce.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "os/fd.h"
#include "watch/sample/sample.h"

namespace mprun {

class ActivityMeter {
 public:
  static constexpr std::size_t kMostOpen = 4096;

  explicit ActivityMeter(std::string root = "/proc");

  /// From now on, looks at the threads of `sample`. Opens and closes only what has changed.
  void set_threads(const Sample& sample, Nanos now);
  /// True if a thread has run since its last look, or has ended; an ended thread is forgotten. One that only ticks does
  /// not count. If the thread that ran last time has run again and `all` is false, stops there; with `ask`, not if it
  /// only wants a GIL.
  [[nodiscard]] bool has_moved(Nanos now, bool all, bool ask = false);
  /// True if the last look asked, and the thread that had run only wanted a GIL. Other waits look the same.
  [[nodiscard]] bool mover_wants_gil() const { return mover_wants_gil_; }
  [[nodiscard]] bool knows_none() const { return threads_.empty(); }

  /// Processes of which no thread has run since `since`. A thread that waits for a GIL wakes up every 5 ms; this does
  /// not count as running.
  [[nodiscard]] std::set<pid_t> resting_since(Nanos since) const;
  /// True if the same holds for all known threads.
  [[nodiscard]] bool all_rest_since(Nanos since) const;
  /// Processes whose first thread has not run since `since`.
  [[nodiscard]] std::set<pid_t> with_resting_main_since(Nanos since) const;
  /// Those of which another thread has.
  [[nodiscard]] std::set<pid_t> run_beside_main_since(Nanos since) const;
  /// When each thread was last seen to have run, or was first seen.
  [[nodiscard]] std::map<pid_t, Nanos> last_moves() const;
  /// How many CPUs the threads used between the last two looks at each.
  [[nodiscard]] double load() const;

 private:
  struct Watched {
    std::string folder;  ///< of the thread, below /proc
    pid_t pid = 0, tid = 0;
    Fd schedstat;
    std::uint64_t runs = 0;
    Nanos cpu = 0, looked = 0;  ///< time on a CPU; when it was last looked at
    double load = 0;            ///< of a CPU, between the last two looks
    bool ticks = false;         ///< as ThreadSample's
    bool at_gil = false;        ///< seen waiting for a GIL, and nowhere else since
    Nanos moved = 0;
    bool ended = false;
  };
  [[nodiscard]] bool has_moved(Watched* thread, Nanos now);
  [[nodiscard]] static bool seems_to_wait_for_gil(Watched* thread);

  std::string root_;
  std::size_t most_open_;
  std::vector<Watched> threads_;
  std::size_t last_mover_ = 0;  ///< asked first: the thread that just ran usually runs again
  bool mover_wants_gil_ = false;
};

}  // namespace mprun
