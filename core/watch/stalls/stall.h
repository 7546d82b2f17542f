// StallMeter: for how long has no thread got anywhere? A thread that is found again and again at the same place of its
// code, in the same system call, gets nowhere, even if it wakes up now and then to look around; unless it has done
// something meanwhile (progress.h). A thread that ends gets somewhere. This proves nothing: a timer or the outside
// could still act. A thread that mprun may not look at gets nowhere while it does not run at all. Pure; lives in the
// watcher.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "base/clock.h"
#include "watch/sample/sample.h"

namespace mprun {

/// How many states a loop that does nothing may go through again and again.
inline constexpr std::size_t kMostStatesOfLoop = 8;

class StallMeter {
 public:
  /// What shows that a thread has done something when it is as it has not been before.
  using ProgressOf = std::function<std::uint64_t(const ThreadSample&)>;

  /// `progress_of`: asked of threads that are found at a new place, or have run since; none: only places count.
  void take(const Sample& sample, Nanos now, const ProgressOf& progress_of = {});

  /// For how long all threads have been where they are, and none has ended; 0 if there is none, or one ran.
  [[nodiscard]] Nanos of_all(Nanos now) const;
  /// For how long one thread has been where it is; 0: not known.
  [[nodiscard]] Nanos of_thread(pid_t tid, Nanos now) const;
  /// True if the thread has run since it came to where it is.
  [[nodiscard]] bool has_woken(pid_t tid) const;

 private:
  struct Place {
    pid_t pid = 0;
    char state = '?';
    std::int64_t call = -1;
    std::uint64_t stack_pointer = 0, program_counter = 0;
    bool operator==(const Place&) const = default;
  };
  struct Stay {
    Place place;
    Nanos since = 0;
    std::uint64_t first_runs = 0, runs = 0;  ///< when it came there, and at the last look
    std::deque<std::uint64_t> progress;      ///< what was seen there last; a loop may come back to the same
  };
  std::map<pid_t, Stay> stays_;  ///< by thread
  Nanos last_end_ = 0;           ///< of a thread
  bool one_runs_ = true;
};

}  // namespace mprun
