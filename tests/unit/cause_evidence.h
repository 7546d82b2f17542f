// CauseEvidence: a made-up tree in the form in which the rules of causes.h receive it. Its processes have numbers
// that no process of this machine has, except `alive`, which is ours: only for it can a ProcessHistory record more
// than the end.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "fake_proc.h"
#include "watch/causes/causes.h"
#include "watch/judge/orphaned_lock.h"

namespace mprun {

constexpr pid_t kParent = 5'000'010, kChild = 5'000'020, kThird = 5'000'030;

class CauseEvidence {
 public:
  FakeProc proc;
  ProcessHistory history = std::move(*ProcessHistory::create(&proc));
  TreeBoundary boundary;
  std::map<pid_t, std::vector<PythonFrame>> python;  ///< by thread, innermost first
  std::map<pid_t, std::vector<std::string>> native;  ///< the same
  std::map<pid_t, Wait> waits;                       ///< by thread, instead of what its system call implies
  pid_t respawner = 0, lost_helper = 0, late = 0;    ///< see Evidence
  std::map<pid_t, double> wakeups;                   ///< the same

  /// A process for which the history records which process forked it, and that it was sent a request to end.
  const pid_t alive = getpid();

  void forked(pid_t pid, pid_t parent, unsigned threads) {
    receive(pid, "fork\t" + std::to_string(parent) + '\t' + std::to_string(parent) + '\t' + std::to_string(threads));
  }
  /// `status`: as from wait().
  void ended(pid_t pid, pid_t parent, int status) {
    receive(parent, "end\t" + std::to_string(pid) + '\t' + std::to_string(status));
  }
  void receive(pid_t pid, const std::string& text) { history.receive({pid, kHistoryNotes, text}); }

  [[nodiscard]] HangCause of_hang() { return ask(RuleSet::kStuck); }
  [[nodiscard]] HangCause of_orphaned_lock() { return ask(RuleSet::kOrphanedLock); }
  [[nodiscard]] HangCause of_stall() { return ask(RuleSet::kStall); }
  [[nodiscard]] HangCause of_late() { return ask(RuleSet::kLate); }

 private:
  HangCause ask(RuleSet set) {
    const Sample sample = take_sample(&proc, process_tree(&proc, 1, false));
    TreeSnapshot snapshot(&proc, &sample, boundary);
    Judgement judgement = judge(sample, &snapshot);
    judgement.orphaned = find_orphaned_waits(judgement, &snapshot);
    for (JudgedThread& thread : judgement.threads) {
      const auto wait = waits.find(thread.sample->tid);
      if (wait != waits.end()) thread.wait = wait->second;
    }
    return find_cause({&judgement, &snapshot, python, native, &history, respawner, lost_helper, late, wakeups}, set);
  }
};

}  // namespace mprun
