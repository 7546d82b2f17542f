// SharedTasks: the supervisor's interface to the source of tasks that several mpruns share while they run. Tasks come
// in runs, in any order, and sometimes none is available until another mprun gives one back or has died.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "events/job_event.h"
#include "job/inputs.h"

namespace mprun {

class SharedTasks {
 public:
  virtual ~SharedTasks() = default;
  /// The task whose input pull() gives next, which is ours from now on; nullopt: none is available now.
  [[nodiscard]] virtual std::optional<TaskId> next(Nanos now) = 0;
  /// As InputSource::pull(); never waits.
  virtual InputSource::Pull pull(std::string* out) = 0;
  /// Every task of the whole job has ended, here or elsewhere.
  [[nodiscard]] virtual bool all_done() const = 0;
  /// Called some times a second: shows the others that we live, and what is done.
  virtual void tick(Nanos now) = 0;
  /// What we wait for while next() gives nothing, human-readable: "blocks of shard 3"; empty: not known.
  [[nodiscard]] virtual std::string waits_for() const = 0;
};

}  // namespace mprun
