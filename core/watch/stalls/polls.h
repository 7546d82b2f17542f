// PollMeter: which threads wake up again and again, look around, and get nowhere? Such a poll may yet decide something,
// so nothing is proved about it. But if all that it could find must come from stuck threads, mprun can report this long
// before a stall. Takes samples, a second or so apart; lives in the watcher.
#pragma once

#include <map>
#include <set>
#include <string>

#include "watch/judge/assumptions.h"
#include "watch/sample/child_poll.h"
#include "watch/stacks/python_stack.h"
#include "watch/stalls/stall.h"

namespace mprun {

class PollMeter {
 public:
  /// `proc` must outlive it.
  explicit PollMeter(ProcSource* proc) : proc_(proc) {}

  void take(const Sample& sample, Nanos now);
  /// Since when all threads have been where they are; 0: one ran, or there are none.
  [[nodiscard]] Nanos since(Nanos now) const;
  /// The processes of which all threads have been where they are for so long.
  [[nodiscard]] std::set<pid_t> resting(Nanos at_least, Nanos now) const;
  /// Threads that woke up several times at the same place with Python variables that they have had there before, none
  /// of which is a time that the loop could compare with the clock.
  [[nodiscard]] std::set<pid_t> polls() const;
  /// The same for threads that sleep in between, in the user's own code, each with the child of its process about which
  /// that has asked each time (child_poll.h).
  [[nodiscard]] std::map<pid_t, pid_t> child_polls() const;
  /// Threads that woke up so, between sleeps too, and look at nothing but objects in memory: for what each waits
  /// (python_loop.h). Each has looked since the last of the threads moved or ended that may bring that about.
  [[nodiscard]] std::map<pid_t, OwnPoll> own_polls() const;
  /// Threads beside the first of their process that have come back to their sleep or wait with a limit, and do nothing
  /// in between that lets another thread go on. No other thread has moved or ended between their last wake-ups.
  [[nodiscard]] std::map<pid_t, Beat> beats() const;

 private:
  struct Poll {
    Nanos since = 0;         ///< when it came to where it is
    std::uint64_t runs = 0;  ///< then, or when `locals` was read
    bool stays = false;
    bool may_decide = false;         ///< PythonThread::may_decide of any look since then
    std::set<std::uint64_t> locals;  ///< fingerprints since then; a loop may come back to the same
    bool sleeps = false;
    ChildPoll child;
    std::uint64_t runs_at_change = 0;  ///< when a thread that may end the poll was last seen to have moved or ended
    OwnPoll own;                       ///< see own_polls(); nothing awaited: not known
    Beat beat;
    int beats = 0;  ///< looks in turn that found `beat`
    int asks = 0;   ///< the same, of a loop that goes on only when a child has ended
  };
  struct Runs {
    pid_t pid = 0;
    std::uint64_t runs = 0;
  };
  void follow(const ThreadSample& thread, Nanos since, Nanos now);
  [[nodiscard]] const PythonStacks& python(pid_t pid);
  void note_changes(const Sample& sample);
  [[nodiscard]] bool only_polls(pid_t tid) const;
  [[nodiscard]] bool has_looked(pid_t tid, const Poll& poll) const;
  /// Only in a process with Python can it be seen that a loop counts nothing.
  [[nodiscard]] bool shows_variables(pid_t pid);

  ProcSource* proc_;
  Nanos age_of_tree_ = 0;
  StallMeter stall_;
  std::map<pid_t, Poll> polls_;           ///< by thread
  std::map<pid_t, Runs> runs_;            ///< of every thread, as of the last sample
  std::map<pid_t, PythonStacks> python_;  ///< by process, as of the last sample
  std::map<pid_t, bool> has_python_;      ///< the same
};

}  // namespace mprun
