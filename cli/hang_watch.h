// HangWatch: the watch over what mprun started, as a run uses it: looks when it is time to, explains what was proved and
// writes the report file. What is then done about a hang is the caller's. Lives in the supervisor's process.
#pragma once

#include "job/spec.h"
#include "launch/guard.h"
#include "watch/explain.h"

namespace mprun {

class HangWatch {
 public:
  HangWatch(WatchPolicy policy, const Guard& guard);

  /// Monotonic.
  [[nodiscard]] Nanos next_look() const { return watcher_.next_look(); }
  /// A hang that was not told before; it is in the report file already. Errors of writing that go to `*warning`.
  [[nodiscard]] std::optional<Hang> look(Nanos now, std::string* warning);

 private:
  WatchPolicy policy_;
  std::unique_ptr<ProcSource> proc_;
  std::vector<RecordedDeath> deaths_;
  Watcher watcher_;
};

}  // namespace mprun
