// ActivityMeter: has any known thread run since the last look? The cheap question that the watch asks while a tree is
// busy: one pread of a kept-open file a thread, and mostly only until the first that has run. Lives in the supervisor;
// owns one descriptor for each of the first kMostOpen threads, fewer where descriptors are few.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "os/fd.h"
#include "watch/sample.h"

namespace mprun {

class ActivityMeter {
 public:
  static constexpr std::size_t kMostOpen = 4096;

  explicit ActivityMeter(std::string root = "/proc");

  /// From now on the threads of `sample` are those that are looked at. Opens and closes only what has changed.
  void set_threads(const Sample& sample, Nanos now);
  /// True if a thread has run since it was looked at last, or has ended: which is then not looked at any more. Stops at
  /// the thread that ran last time, if that has run again and `all` is false; with `ask` not if it only wants a GIL.
  [[nodiscard]] bool has_moved(Nanos now, bool all, bool ask = false);
  /// Whether the last look asked, and the thread that had run only wanted a GIL. Other waits look the same.
  [[nodiscard]] bool mover_wants_gil() const { return mover_wants_gil_; }
  [[nodiscard]] bool knows_none() const { return threads_.empty(); }

  /// Processes none of whose threads has run since `since`; waiting for a GIL, which is done by looking again every
  /// 5 ms, does not count as running.
  [[nodiscard]] std::set<pid_t> resting_since(Nanos since) const;
  /// The same of all that are known.
  [[nodiscard]] bool all_rest_since(Nanos since) const;
  /// Processes whose first thread has not run since, while another of their threads has.
  [[nodiscard]] std::set<pid_t> with_resting_main_since(Nanos since) const;
  /// When each thread was last seen to have run, or was seen first.
  [[nodiscard]] std::map<pid_t, Nanos> last_moves() const;
  /// Of how many CPUs the threads have made use, between the last two looks at each.
  [[nodiscard]] double load() const;
  /// How often threads got a CPU between the last two looks at all of them.
  [[nodiscard]] std::uint64_t runs_of_last_look() const { return runs_; }

 private:
  struct Watched {
    std::string folder;  ///< of the thread, below /proc
    pid_t pid = 0, tid = 0;
    Fd schedstat;
    std::uint64_t runs = 0;
    Nanos cpu = 0, looked = 0;  ///< time on a CPU, when it was looked at last
    double load = 0;            ///< of a CPU, between the last two looks
    bool at_gil = false;        ///< seen waiting for a GIL, and nowhere else since
    Nanos moved = 0;
    bool ended = false;
  };
  [[nodiscard]] bool has_moved(Watched* thread, Nanos now);
  [[nodiscard]] static bool seems_to_wait_for_gil(Watched* thread);

  std::string root_;
  std::size_t most_open_;
  std::vector<Watched> threads_;
  std::size_t last_mover_ = 0;  ///< asked first: who ran a moment ago mostly runs again
  bool mover_wants_gil_ = false;
  std::uint64_t runs_ = 0;
};

}  // namespace mprun
