// HangMonitor: who watches over the processes of a job for the supervisor. The watch itself is a module that knows the
// supervisor's (core/watch); cli/ brings them together.
#pragma once

#include <sys/types.h>

#include <map>
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
    HangFound told;      ///< its views are valid until the next look
    std::string reason;  ///< one line: "deadlock, openmp-after-fork: process 12 was forked from ..."
    /// Processes that can never return, or have missed a deadline of their own or of one below them, and the line of
    /// code that each is at ("" if that is not known). Who is not among them goes on, or copes, and is not to be ended
    /// for the others.
    std::map<pid_t, std::string> stuck;
    bool of_all = false;      ///< nobody gets anywhere, though nothing is proved of anyone
    bool ends_start = false;  ///< if the job is still starting, it cannot any more
  };

  /// What the supervisor knows of processes beside those that run.
  struct Outlook {
    std::set<pid_t> hosts;   ///< they fork workers when mprun asks for that, and else do nothing
    bool may_start = false;  ///< there is work that nobody has yet, and a place for one who has not been started
  };

  virtual ~HangMonitor() = default;
  /// Before each look.
  virtual void expect(const Outlook& /*outlook*/) {}
  /// Readable when a process has ended: take_ends() then.
  [[nodiscard]] virtual int fd() const = 0;
  virtual void take_ends() = 0;
  /// False: the note is for people.
  virtual bool hear(const AdapterNote& note) = 0;
  /// Monotonic.
  [[nodiscard]] virtual Nanos next_look() const = 0;
  [[nodiscard]] virtual std::optional<Finding> look(Nanos now) = 0;
  /// A limit of the job's has passed in a process: where that is. `stuck` holds that process alone.
  [[nodiscard]] virtual Finding explain_limit(pid_t pid, const std::string& label, double seconds) = 0;
  /// mprun ends this process now, or has ended what it left behind: its descendants are ended with it.
  virtual void expect_end(pid_t /*pid*/) {}
  /// What people have to know of what the monitor cannot see, one line; each is given once. Ask after look().
  [[nodiscard]] virtual std::optional<std::string> take_warning() { return std::nullopt; }
};

}  // namespace mprun
