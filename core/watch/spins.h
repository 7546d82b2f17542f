// SpinMeter: which threads burn a CPU in a library's loop that only waits, such as MPI's for messages? They look as if
// they computed, so that nothing is proved of them; but when all that they could get has to come from threads that are
// stuck, that can be said. Fed with samples, a second or so apart; lives in the watcher.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "procfs/proc_source.h"
#include "watch/sample.h"

namespace mprun {

class SpinMeter {
 public:
  /// What a thread that runs is in: call_that_spins() of its stack.
  using CallOf = std::function<std::string(const ThreadSample&)>;

  /// `proc` outlives it. `call_of`: reads the stack of the running thread unless a test has another way.
  explicit SpinMeter(ProcSource* proc, CallOf call_of = {});

  /// Stops threads that run in processes with such a library for some 100 us each.
  void take(const Sample& sample, Nanos now);
  /// Since when all threads that run have been in one call each that only waits, while the variables of their Python,
  /// and the memory that they share with others, stayed the same at three looks or more; 0: one was elsewhere, or none
  /// runs.
  [[nodiscard]] Nanos since() const;
  /// Those threads, with the call that each is in ("MPI_Recv").
  [[nodiscard]] std::map<pid_t, std::string> spins() const;

 private:
  struct Spin {
    Nanos since = 0;
    int looks = 1;  ///< that found it so
    std::string call;
    std::uint64_t locals = 0;    ///< a fingerprint of the variables of its Python
    std::uint64_t messages = 0;  ///< and one of all that it has sent and received
    [[nodiscard]] bool is_where(const Spin& other) const {
      return call == other.call && locals == other.locals && messages == other.messages;
    }
  };

  [[nodiscard]] Spin look(const ThreadSample& thread, Nanos now) const;

  ProcSource* proc_;
  CallOf call_of_;
  std::map<pid_t, Spin> spins_;  ///< by thread
};

/// The call that a thread is in, whose library only waits; "": there is none. `frames` as NativeStack has them.
[[nodiscard]] std::string call_that_spins(const std::vector<std::string>& frames);
/// Whether a process may have such calls.
[[nodiscard]] bool may_spin(const std::vector<Mapping>& maps);
/// Whether it is mpirun, or a daemon of it: starts ranks and serves them.
[[nodiscard]] bool is_mpi_launcher(const std::vector<Mapping>& maps);

}  // namespace mprun
