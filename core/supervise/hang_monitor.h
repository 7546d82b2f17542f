// HangMonitor: who watches over the processes of a job for the supervisor. The watch itself is a module that knows the
// supervisor's (core/watch); cli/ brings them together.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "supervise/job_event.h"
#include "wire/notes.h"

namespace mprun {

class HangMonitor {
 public:
  struct Finding {
    HangFound told;         ///< its views are valid until the next look
    bool proved = false;    ///< false: nothing has moved for long, or a part of it, but something could
    std::set<pid_t> stuck;  ///< processes that can never move again
    std::string reason;     ///< one line: "it can never go on: deadlock (openmp-after-fork): ..."
  };

  virtual ~HangMonitor() = default;
  /// Readable when a process has ended: take_ends() then.
  [[nodiscard]] virtual int fd() const = 0;
  virtual void take_ends() = 0;
  /// False: the note is for people.
  virtual bool hear(const AdapterNote& note) = 0;
  /// Monotonic.
  [[nodiscard]] virtual Nanos next_look() const = 0;
  [[nodiscard]] virtual std::optional<Finding> look(Nanos now) = 0;
};

}  // namespace mprun
