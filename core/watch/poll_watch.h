// PollWatch: reports early that all threads that still run do so to look around and wait again, if all that they could
// find must come from stuck threads. Lives in the watcher.
#pragma once

#include "watch/stalls/polls.h"
#include "watch/stalls/suspects.h"
#include "watch/time_share.h"
#include "watch/watched_tree.h"

namespace mprun {

class PollWatch {
 public:
  /// `tree` must outlive it.
  explicit PollWatch(const WatchedTree* tree);

  [[nodiscard]] std::optional<Proof> look(Nanos now);
  /// A thread ran when it last looked.
  [[nodiscard]] bool any_runs() const;
  /// PollMeter::child_polls() and own_polls() of the last look.
  [[nodiscard]] std::map<pid_t, pid_t> child_polls() const { return polls_.child_polls(); }
  [[nodiscard]] std::map<pid_t, OwnPoll> own_polls() const { return polls_.own_polls(); }
  /// A process that polls for what no thread receives (stalls/lost_poller.h), as one look shows; 0: none.
  [[nodiscard]] pid_t find_lost_poller_now(const Sample& sample) const;

 private:
  struct State {
    Nanos since = 0;  ///< all threads are where they are
    std::set<pid_t> polls;
    std::map<pid_t, pid_t> child_polls;
    std::map<pid_t, OwnPoll> own_polls;
    std::set<pid_t> ran;  ///< between the last two samples, and it was no poll
    bool operator==(const State&) const = default;
    [[nodiscard]] bool is_like(State other) const {
      other.since = since;
      return *this == other;
    }
  };
  [[nodiscard]] State state_of(const Sample& part, Nanos since) const;
  [[nodiscard]] bool is_news(const State& state, Nanos since);
  [[nodiscard]] std::optional<Proof> find_lost_poller(const Sample& sample, Nanos now);

  const WatchedTree* tree_;
  TimeShare looks_;
  PollMeter polls_;
  Suspects lost_pollers_;
  Nanos last_look_ = 0;
  Sample sample_;  ///< the last that `polls_` was given
  State judged_, reported_;
  int judgements_ = 0;  ///< of the state `judged_`
  Nanos went_on_ = 0;   ///< when what was reported was last seen
};

}  // namespace mprun
