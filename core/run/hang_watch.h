// HangWatch: watches what mprun started for a run, or trees of processes that it has not started: receives notes of
// forks and ends, looks when it is due, explains what it finds and writes it to files. The caller decides what to do
// about a hang. Lives in the supervisor's process.
#pragma once

#include "base/log.h"
#include "engine/hang_monitor.h"
#include "job/spec.h"
#include "launch/guard.h"
#include "watch/causes/process_history.h"
#include "watch/deadline_watch.h"
#include "watch/explain.h"
#include "watch/watcher.h"

namespace mprun {

class HangWatch : public HangMonitor {
 public:
  /// Watches what is below this process. `run_dir`: where hangs/N.json and hangs/N.txt go; empty: nowhere.
  [[nodiscard]] static Result<std::unique_ptr<HangWatch>> create(WatchPolicy policy, const Guard& guard,
                                                                 std::string run_dir);
  /// Watches the trees of `roots`. What they share with the rest of the machine counts as the outside.
  [[nodiscard]] static Result<std::unique_ptr<HangWatch>> create(WatchPolicy policy, const std::vector<pid_t>& roots);

  /// Says there what it sees and what it does not report; nullptr: nowhere. `log` outlives it.
  void log_to(Log* log) { log_ = log; }
  /// The tree of that root has ended, or is not to be watched any more.
  void forget(pid_t root);
  [[nodiscard]] std::string deadlines() const override { return deadlines_->path(); }
  /// What all threads below do or wait for, as `mprun inspect` prints it. Takes up to a second.
  [[nodiscard]] std::string inspect();
  [[nodiscard]] int fd() const override { return history_->fd(); }
  void take_ends() override { history_->take_ends(); }
  bool receive(const AdapterNote& note) override { return history_->receive(note); }
  [[nodiscard]] Nanos next_look() const override;
  [[nodiscard]] std::optional<Finding> look(Nanos now) override;
  [[nodiscard]] Finding explain_limit(pid_t pid, const std::string& label, double seconds) override;
  void expect(const Outlook& outlook) override { outlook_ = outlook; }
  void watch_sync(const SyncSegment* sync) override { sync_ = sync; }
  void expect_end(pid_t pid) override { history_->expect_end(pid); }
  [[nodiscard]] std::optional<std::string> take_warning() override { return std::exchange(warning_, std::nullopt); }

 private:
  HangWatch(WatchPolicy policy, pid_t guard, std::string run_dir)
      : policy_(std::move(policy)), run_dir_(std::move(run_dir)), guard_(guard), proc_(live_proc()) {}
  [[nodiscard]] Result<void> open();
  void add(WatchedTree::Options tree, const WatchedTree::AskBoundary& boundary);
  [[nodiscard]] TreeBoundary boundary();
  /// A proof, and the root of its tree.
  [[nodiscard]] std::optional<std::pair<Proof, pid_t>> find(Nanos now);
  [[nodiscard]] std::optional<Finding> look_at_deadlines(Nanos now);
  [[nodiscard]] Finding report(const Hang& hang);
  void take(const Sample& sample);
  void warn_of_hidden(Nanos now);
  void write(const Hang& hang);
  void log_look(pid_t root, Nanos begun) const;
  void log_unreported(const Hang& hang) const;

  WatchPolicy policy_;
  std::string run_dir_;
  pid_t guard_ = 0;
  std::unique_ptr<ProcSource> proc_;
  std::optional<ProcessHistory> history_;
  std::map<pid_t, Watcher> watchers_;  ///< by the roots of their trees
  std::optional<DeadlineWatch> deadlines_;
  const SyncSegment* sync_ = nullptr;
  Outlook outlook_;
  Log* log_ = nullptr;
  std::size_t threads_ = 0;  ///< of the last sample
  int count_ = 0;            ///< hangs reported so far
  std::string text_, file_;  ///< of the last one
  std::string verdict_, cause_;
  std::optional<std::string> warning_;
  bool sees_nothing_ = false;
  Nanos rests_until_ = 0;  ///< where it sees nothing
  pid_t hidden_ = 0;       ///< a process that mprun may not look at; 0: none
  Nanos hidden_since_ = 0;
  bool warned_of_hidden_ = false;
};

}  // namespace mprun
