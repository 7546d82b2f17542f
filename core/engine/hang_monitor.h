// HangMonitor: watches what mprun has started. The watch itself is core/watch, a module that this one does not know;
// cli/ connects the two.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "events/job_event.h"
#include "sync/sync_segment.h"
#include "wire/notes.h"

namespace mprun {

class HangMonitor {
 public:
  struct Finding {
    HangFound event;     ///< its views are valid until the next look
    std::string reason;  ///< one line: "deadlock, openmp-after-fork: process 12 was forked from ..."
    /// Processes that can never return, or have missed a deadline of their own or of one below them, and the line of
    /// code that each is at ("" if that is not known). A process that is not among them goes on, or copes, and must not
    /// be ended because of the others.
    std::map<pid_t, std::string> stuck;
    bool is_proved = false;   ///< what is stuck can never return
    pid_t root = 0;           ///< of the tree that it was found in: the supervisor, or a process of `mprun watch`
    bool of_all = false;      ///< no process gets anywhere, though nothing is proved of any
    bool ends_start = false;  ///< a job that is still starting can never start
  };

  /// What the supervisor knows about the job beyond its running processes.
  struct Outlook {
    std::set<pid_t> hosts;   ///< they fork workers when mprun asks for that, and otherwise do nothing
    bool may_start = false;  ///< there is work that no worker has yet, and a slot whose worker was not started
  };

  virtual ~HangMonitor() = default;
  /// The memory that the processes below share; it outlives the monitor's work.
  virtual void watch_sync(const SyncSegment* sync) = 0;
  /// The value of MPRUN_DEADLINES for what is started.
  [[nodiscard]] virtual std::string deadlines() const = 0;
  /// Called before each look.
  virtual void expect(const Outlook& /*outlook*/) {}
  /// Readable when a process has ended: take_ends() then.
  [[nodiscard]] virtual int fd() const = 0;
  virtual void take_ends() = 0;
  /// False: the note is for the user.
  virtual bool receive(const AdapterNote& note) = 0;
  /// Monotonic.
  [[nodiscard]] virtual Nanos next_look() const = 0;
  [[nodiscard]] virtual std::optional<Finding> look(Nanos now) = 0;
  /// A process has exceeded a limit of the job: says where it is. `stuck` holds that process alone.
  [[nodiscard]] virtual Finding explain_limit(pid_t pid, const std::string& label, double seconds) = 0;
  /// mprun ends this process now, or what it left: its descendants are ended with it.
  virtual void expect_end(pid_t /*pid*/) {}
  /// A one-line warning to the user about what the monitor cannot see; each is returned once. Call it after look().
  [[nodiscard]] virtual std::optional<std::string> take_warning() { return std::nullopt; }
};

}  // namespace mprun
