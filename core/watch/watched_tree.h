// WatchedTree: the processes of one watcher. Takes samples of them, and has these judged with what is known of the tree
// from elsewhere. Lives in the watcher, which its stalls share it with.
#pragma once

#include <functional>

#include "base/clock.h"
#include "watch/proof.h"

namespace mprun {

class WatchedTree {
 public:
  struct Options {
    pid_t root = 0;
    bool with_root = false;   ///< false: the descendants of `root` alone
    Nanos stall = 0;          ///< report a stall when no thread has got anywhere for so long; 0: never
    bool stops_last = false;  ///< report early what waits for a stopped process; else it may be continued soon
  };
  using AskBoundary = std::function<TreeBoundary()>;
  /// How many children of a process ended badly since `when` (monotonic); `forked`: those that ran what it runs.
  struct Deaths {
    std::size_t all = 0, forked = 0;
  };
  using CountDeaths = std::function<Deaths(pid_t parent, Nanos when)>;
  using TakeSample = std::function<void(const Sample&)>;

  /// `boundary` is called for every judgement, `taken` for every sample; `proc` must outlive it.
  WatchedTree(ProcSource* proc, Options options, AskBoundary boundary, CountDeaths deaths, TakeSample taken);

  [[nodiscard]] ProcSource* proc() const { return proc_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] std::vector<pid_t> processes() const;
  [[nodiscard]] Deaths deaths(pid_t parent, Nanos since) const { return deaths_(parent, since); }

  [[nodiscard]] std::unique_ptr<Sample> sample() const;
  /// The same, after looking again for some milliseconds at threads that run, until they wait.
  [[nodiscard]] std::unique_ptr<Sample> sample_at_rest() const;
  /// Looks again at those threads of `sample` that run and are wanted: up to `tries` times, a millisecond apart.
  void catch_at_rest(Sample* sample, int tries, const std::function<bool(const ThreadSample&)>& is_wanted) const;

  [[nodiscard]] Proof judge(std::unique_ptr<Sample> sample) const;
  /// Judges what stood still between two samples; nullopt: nothing did.
  [[nodiscard]] std::optional<Proof> judge_part(const Sample& before, const Sample& after) const;
  [[nodiscard]] std::optional<Proof> judge_assuming(std::unique_ptr<Sample> sample, Assumptions assumptions) const;
  /// What the stalls assume that are reported before their limit has passed.
  [[nodiscard]] Assumptions early_assumptions() const;
  /// A stall that shows `sample`, of which nothing is proved.
  [[nodiscard]] Proof as_stall(std::unique_ptr<Sample> sample) const;

 private:
  ProcSource* proc_;
  Options options_;
  AskBoundary boundary_;
  CountDeaths deaths_;
  TakeSample taken_;
};

}  // namespace mprun
