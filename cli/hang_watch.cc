#include "hang_watch.h"

#include <unistd.h>

#include "record/atomic_file.h"
#include "report/hang_report.h"

namespace mprun {

HangWatch::HangWatch(WatchPolicy policy, const Guard& guard)
    : policy_(std::move(policy)),
      proc_(live_proc()),
      watcher_(proc_.get(), {getpid(), false}, [this, guard = guard.pid] {
        Outside outside;
        outside.foreign = inodes_held_by(proc_.get(), {getpid(), guard});
        return outside;
      }) {}

std::optional<Hang> HangWatch::look(Nanos now, std::string* warning) {
  auto proof = watcher_.look(now);
  if (!proof) return std::nullopt;
  Hang hang = explain(&*proof, proc_.get(), deaths_, now);
  // Of a part of a tree that nobody waits for, and that no rule knows, it cannot be said that it is wrong.
  if (hang.verdict == HangVerdict::kPartialDeadlock && hang.cause.id == "unknown") return std::nullopt;
  if (!policy_.hang_report.empty()) {
    const auto written = write_atomically(policy_.hang_report, indented(hang_json(hang)));
    if (!written) *warning = written.error().message;
  }
  return hang;
}

}  // namespace mprun
