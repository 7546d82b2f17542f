// WorkerUse: the CPU time and the memory of workers, each with all its descendants. The supervisor asks about once a
// second, for displays and for the records of a job. Owns what it remembers about processes between two looks.
//
// The CPU time is what the kernel counts: the time of an ended process goes to its parent as soon as that has waited
// for it. A process that mprun inherits takes its time along. A reported time never becomes smaller.
//
// The memory is the proportional share (PSS), so that the workers' values add up to what all use together; for a
// process that we may not look into, its resident pages. The kernel walks through all pages for PSS (20 ms a GiB), so
// each look has a limit of pages, and begins with the processes that were walked through longest ago. For the others it
// takes what they had then, and what has become resident since.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "procfs/process_table.h"

namespace mprun {

class WorkerUse {
 public:
  /// `page`: bytes. `proc` must outlive this.
  WorkerUse(ProcSource* proc, std::uint64_t page, std::uint64_t ticks_per_second)
      : proc_(proc), page_(page), ticks_per_second_(ticks_per_second) {}

  struct Use {
    double cpu = 0;            ///< seconds since it was started
    std::uint64_t memory = 0;  ///< bytes
    bool stopped = false;      ///< by SIGSTOP, or a debugger
  };
  /// For those of `workers` (each the leader of a process group of its own) that exist; `table`: of now.
  [[nodiscard]] std::map<pid_t, Use> look(const ProcessTable& table, const std::vector<pid_t>& workers);

  /// The seconds of CPU time of a worker that has ended and is not reaped yet; of one that is gone already, what was
  /// seen last. Forgets the worker.
  [[nodiscard]] double cpu_at_end(pid_t worker);

 private:
  struct Time {
    std::uint64_t reported = 0, lost = 0;  ///< ticks; lost: of processes that none of the family has waited for
    bool fell = false;                     ///< in the last look, when a process may just have been between two others
  };
  struct Pages {  ///< of one process, when they were walked through
    std::uint64_t start_ticks = 0, resident_pages = 0, bytes = 0;
    std::uint64_t look = 0;  ///< in which that was
  };

  [[nodiscard]] double cpu_of(const ProcessTable& table, const std::vector<pid_t>& family);
  void walk(const ProcessTable& table, const std::vector<pid_t>& processes);
  [[nodiscard]] std::uint64_t memory_of(const StatLine& process) const;
  [[nodiscard]] double seconds(std::uint64_t ticks) const;

  ProcSource* proc_;
  std::uint64_t page_, ticks_per_second_;
  std::uint64_t looks_ = 0;
  std::map<pid_t, Time> times_;  ///< of workers
  std::map<pid_t, Pages> pages_;
};

}  // namespace mprun
