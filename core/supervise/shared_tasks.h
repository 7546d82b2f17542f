// SharedTasks: where tasks come from that several mpruns share while they run, behind one interface for the supervisor.
// They come in runs, in any order, and sometimes none is to be had until another mprun gives one back or has died.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "job/inputs.h"
#include "supervise/job_event.h"

namespace mprun {

class SharedTasks {
 public:
  virtual ~SharedTasks() = default;
  /// The task whose input pull() gives next, which is ours from now on; nullopt: none is to be had now.
  [[nodiscard]] virtual std::optional<TaskId> next(Nanos now) = 0;
  /// As InputSource::pull(); never waits.
  virtual InputSource::Pull pull(std::string* out) = 0;
  /// Every task of the whole job has ended, here or elsewhere.
  [[nodiscard]] virtual bool all_done() const = 0;
  /// Called some times a second: tells the others that we live, and what is done.
  virtual void tick(Nanos now) = 0;
  /// Whom we wait for while next() gives nothing, for people: "blocks of shard 3"; empty: nobody that is known.
  [[nodiscard]] virtual std::string waits_for() const = 0;
};

}  // namespace mprun
