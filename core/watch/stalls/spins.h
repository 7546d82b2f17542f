// SpinMeter: which threads burn a CPU in a library's loop that only waits, such as MPI's for messages? They look as if
// they computed, so nothing is proved about them. But if all that they could get must come from stuck threads, mprun
// can report this. Takes samples, a second or so apart; lives in the watcher.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "procfs/proc_source.h"
#include "watch/sample/sample.h"

namespace mprun {

class SpinMeter {
 public:
  /// The call that a running thread is in: call_that_spins() of its stack. nullopt: the stack cannot be read where the
  /// thread is now.
  using CallOf = std::function<std::optional<std::string>(const ThreadSample&)>;

  /// `proc` must outlive it. `call_of`: by default, reads the stack of the running thread; tests pass their own.
  explicit SpinMeter(ProcSource* proc, CallOf call_of = {});

  /// Stops each running thread of a process with such a library for some 100 us, five times at most.
  void take(const Sample& sample, Nanos now);
  /// Since when each running thread has been in one call that only waits, while its Python variables, and the memory
  /// that it shares with others, stayed the same at three looks or more; 0: one was elsewhere, or none runs. On a
  /// crowded machine, a look at a thread that has had no CPU since the last one does not count.
  [[nodiscard]] Nanos since() const;
  /// Those threads, with the call that each is in ("MPI_Recv").
  [[nodiscard]] std::map<pid_t, std::string> spins() const;

 private:
  struct Spin {
    Nanos since = 0;
    int looks = 1;  ///< that found it so, after it had run meanwhile
    Nanos cpu = 0;  ///< the time that the thread had had a CPU at the last of them
    std::string call;
    std::uint64_t locals = 0;    ///< a fingerprint of the variables of its Python
    std::uint64_t messages = 0;  ///< and one of all that it has sent and received
    [[nodiscard]] bool is_where(const Spin& other) const {
      return call == other.call && locals == other.locals && messages == other.messages;
    }
  };

  [[nodiscard]] std::string call_that_spins_of(const ThreadSample& thread) const;
  [[nodiscard]] Spin look(const ThreadSample& thread, Nanos now) const;

  ProcSource* proc_;
  CallOf call_of_;
  std::map<pid_t, Spin> spins_;  ///< by thread
};

}  // namespace mprun
