// HangWatch: the watch over what mprun started, as a run uses it: hears of forks and ends, looks when it is time to,
// explains what was proved and writes the report file. What is then done about a hang is the caller's. Lives in the
// supervisor's process.
#pragma once

#include "job/spec.h"
#include "launch/guard.h"
#include "watch/explain.h"
#include "watch/family.h"

namespace mprun {

class HangWatch {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HangWatch>> create(WatchPolicy policy, const Guard& guard);

  /// Readable when a process has ended: take_ends() then.
  [[nodiscard]] int fd() const { return family_->fd(); }
  void take_ends() { family_->take_ends(); }
  /// False: the note is for others.
  bool hear(const AdapterNote& note) { return family_->hear(note); }

  /// Monotonic.
  [[nodiscard]] Nanos next_look() const { return watcher_->next_look(); }
  /// A hang that was not told before; it is in the report file already. Errors of writing that go to `*warning`.
  [[nodiscard]] std::optional<Hang> look(Nanos now, std::string* warning);

 private:
  explicit HangWatch(WatchPolicy policy) : policy_(std::move(policy)), proc_(live_proc()) {}

  WatchPolicy policy_;
  std::unique_ptr<ProcSource> proc_;
  std::optional<Family> family_;
  std::optional<Watcher> watcher_;
};

}  // namespace mprun
