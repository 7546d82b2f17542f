// Usage: what the processes of a job use, by worker slot. Kept by the supervisor, which reports the end of workers and
// says when to look; owns the counts of earlier workers of a slot.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "procfs/worker_use.h"

namespace mprun {

class Usage {
 public:
  /// `proc` must outlive this.
  Usage(ProcSource* proc, int slots);

  struct Slot {
    double cpu = 0;            ///< seconds, of all its workers so far, with their descendants
    double load = 0;           ///< CPUs that they kept busy between the last two looks
    std::uint64_t memory = 0;  ///< bytes, of its current worker
    bool stopped = false;      ///< its current worker was, by SIGSTOP
  };
  /// `pids`: the current workers, with their slots. `table`: of now (monotonic).
  void look(const ProcessTable& table, const std::map<pid_t, int>& pids, Nanos now);
  /// The process has ended, and is not reaped yet.
  void process_ended(int slot, pid_t pid);
  /// As it was in the last look.
  [[nodiscard]] const Slot& at(int slot) const { return seen_[static_cast<std::size_t>(slot)]; }

 private:
  WorkerUse use_;
  std::vector<Slot> seen_;
  std::vector<double> ended_;  ///< seconds of CPU time of workers that have left the slot
  Nanos looked_ = 0;
};

}  // namespace mprun
