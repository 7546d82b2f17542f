#include "hang_watch.h"

#include <unistd.h>

#include "record/atomic_file.h"
#include "report/hang_report.h"

namespace mprun {

Result<std::unique_ptr<HangWatch>> HangWatch::create(WatchPolicy policy, const Guard& guard) {
  std::unique_ptr<HangWatch> watch(new HangWatch(std::move(policy)));
  auto family = Family::create(watch->proc_.get());
  if (!family) return family.error();
  watch->family_.emplace(std::move(*family));
  const auto outside = [self = watch.get(), guard = guard.pid] {
    Outside found;
    found.foreign = inodes_held_by(self->proc_.get(), {getpid(), guard});
    found.alarms = self->family_->alarms();
    return found;
  };
  watch->watcher_.emplace(watch->proc_.get(), Watcher::Tree{getpid(), false}, outside);
  return watch;
}

std::optional<Hang> HangWatch::look(Nanos now, std::string* warning) {
  auto proof = watcher_->look(now);
  if (!proof) return std::nullopt;
  Hang hang = explain(&*proof, proc_.get(), *family_, now);
  // Of a part of a tree that nobody waits for, and that no rule knows, it cannot be said that it is wrong.
  if (hang.verdict == HangVerdict::kPartialDeadlock && hang.cause.id == "unknown") return std::nullopt;
  if (!policy_.hang_report.empty()) {
    const auto written = write_atomically(policy_.hang_report, indented(hang_json(hang)));
    if (!written) *warning = written.error().message;
  }
  return hang;
}

}  // namespace mprun
