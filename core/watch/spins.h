// SpinMeter: which threads burn a CPU in a library's loop that only waits, such as MPI's for messages? They look as if
// they computed, so that nothing is proved of them; but when all that they could get has to come from threads that are
// stuck, that can be said. Fed with samples, a second or so apart; lives in the watcher.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "procfs/proc_source.h"
#include "watch/sample.h"

namespace mprun {

class SpinMeter {
 public:
  /// `proc` outlives it.
  explicit SpinMeter(ProcSource* proc) : proc_(proc) {}

  /// Stops threads that run in processes with such a library for some 100 us each.
  void take(const Sample& sample, Nanos now);
  /// Since when all threads that run have been in one call each that only waits, while the variables of their Python,
  /// and the memory that they share with others, stayed the same; 0: one was elsewhere, or none runs.
  [[nodiscard]] Nanos since() const;
  /// Those threads, with the call that each is in ("MPI_Recv").
  [[nodiscard]] std::map<pid_t, std::string> spins() const;

 private:
  struct Spin {
    Nanos since = 0;
    std::string call;
    std::uint64_t locals = 0;    ///< a fingerprint of the variables of its Python
    std::uint64_t messages = 0;  ///< and one of all that it has sent and received
    bool operator==(const Spin&) const = default;
  };

  [[nodiscard]] Spin look(const ThreadSample& thread, Nanos now) const;

  ProcSource* proc_;
  std::map<pid_t, Spin> spins_;  ///< by thread
};

/// The call that a thread is in, whose library only waits; "": there is none. `frames` as NativeStack has them.
[[nodiscard]] std::string call_that_spins(const std::vector<std::string>& frames);
/// Whether a process may have such calls.
[[nodiscard]] bool may_spin(const std::vector<Mapping>& maps);
/// Whether it starts processes with such calls and serves them, as mpirun does.
[[nodiscard]] bool starts_who_spins(const std::vector<Mapping>& maps);

}  // namespace mprun
