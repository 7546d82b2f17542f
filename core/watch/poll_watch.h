// PollWatch: reports early that all threads that still run do so to look around and wait again, if all that they could
// find must come from stuck threads. While other processes run, it says the same of those that do not. Lives in the
// watcher.
#pragma once

#include "watch/stalls/polls.h"
#include "watch/stalls/suspects.h"
#include "watch/time_share.h"
#include "watch/unawaited_parts.h"
#include "watch/watched_tree.h"

namespace mprun {

class PollWatch {
 public:
  /// `tree` must outlive it.
  explicit PollWatch(const WatchedTree* tree);

  /// `busy`: more runs than polls do.
  [[nodiscard]] std::optional<Proof> look(Nanos now, bool busy);
  /// A thread ran when it last looked.
  [[nodiscard]] bool any_runs() const;
  /// PollMeter::child_polls(), own_polls() and beats() of the last look.
  [[nodiscard]] std::map<pid_t, pid_t> child_polls() const { return polls_.child_polls(); }
  [[nodiscard]] std::map<pid_t, OwnPoll> own_polls() const { return polls_.own_polls(); }
  [[nodiscard]] std::map<pid_t, Beat> beats() const { return polls_.beats(); }
  /// A process that polls for what no thread receives (stalls/lost_poller.h), as one look shows; 0: none.
  [[nodiscard]] pid_t find_lost_poller_now(const Sample& sample) const;

 private:
  struct State {
    Nanos since = 0;  ///< all threads are where they are; 0: of a part that is where it is
    std::set<pid_t> polls;
    std::map<pid_t, pid_t> child_polls;
    std::map<pid_t, OwnPoll> own_polls;
    std::map<pid_t, Beat> beats;
    std::set<pid_t> ran;   ///< between the last two samples, and it was no poll
    bool is_late = false;  ///< it has been there for as long as counts as a stall
    bool operator==(const State&) const = default;
    [[nodiscard]] bool any_polls() const {
      return !polls.empty() || !child_polls.empty() || !own_polls.empty() || !beats.empty();
    }
    [[nodiscard]] bool is_poll(pid_t tid) const {
      return polls.count(tid) != 0 || child_polls.count(tid) != 0 || own_polls.count(tid) != 0 || beats.count(tid) != 0;
    }
    void leave_out(pid_t tid) {
      polls.erase(tid);
      child_polls.erase(tid);
      own_polls.erase(tid);
      beats.erase(tid);
      ran.erase(tid);
    }
    [[nodiscard]] bool is_like(State other) const {
      other.since = since;
      return *this == other;
    }
  };
  [[nodiscard]] State state_of(const Sample& part, Nanos since) const;
  [[nodiscard]] bool is_news(const State& state, Nanos now);
  [[nodiscard]] std::optional<Proof> judge(const Sample& part, const State& state) const;
  [[nodiscard]] std::optional<Proof> look_at_part(Sample part, Nanos now);
  [[nodiscard]] std::optional<Proof> find_lost_poller(const Sample& sample, Nanos now);

  const WatchedTree* tree_;
  TimeShare looks_;
  PollMeter polls_;
  Suspects lost_pollers_;
  Nanos last_look_ = 0, judged_at_ = 0;
  Sample sample_;  ///< the last that `polls_` was given
  State judged_, reported_;
  UnawaitedParts unawaited_;
  std::pair<std::set<pid_t>, bool> reported_part_;  ///< the stuck processes of the last one, and whether it was late
  int judgements_ = 0;                              ///< of the state `judged_`
  Nanos went_on_ = 0;                               ///< when what was reported was last seen
};

}  // namespace mprun
