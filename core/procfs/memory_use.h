// MemoryUse: how much memory of their own the workers of a job use, each with all its descendants. The supervisor asks
// a few times a second, if a job limits it. Owns what it remembers about the processes between two looks.
//
// A worker's own memory is what the kernel gets back when it ends: not what it shares with processes outside (a model
// that was loaded before the fork), not files it has mapped. So a worker is charged the same whether it has siblings or
// not. Its proportional share (PSS) would not do that: the last of eight forked workers would seem to grow to half the
// model. What a worker and its descendants share counts in proportion among them, so that it counts once.
//
// It first adds up resident pages, which are in the same line of /proc/PID/stat as the parent. Only if those pass the
// limit does it read /proc/PID/smaps_rollup, for which the kernel walks through all pages (20 ms a GiB), and not again
// before the process can have come near the limit: every new page costs it a fault.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "procfs/process_table.h"

namespace mprun {

/// From /proc/PID/smaps_rollup; bytes.
struct MemoryRollup {
  std::uint64_t proportional = 0;  ///< anonymous and shared memory and swap, each page divided by its users
  std::uint64_t only_its = 0;      ///< of those, what no other process has
  std::uint64_t shared_files = 0;  ///< the part of `proportional` that lies in shared memory
  std::uint64_t resident = 0;      ///< PSS: all that is in memory, files too, each page divided by its users
};
/// False if it is no such file.
[[nodiscard]] bool parse_memory_rollup(std::string_view text, MemoryRollup* rollup);

class MemoryUse {
 public:
  /// `limit`: bytes a worker may use. `given`: bytes of shared memory that mprun itself made for all workers: no
  /// worker's own. `page`: bytes. `proc` must outlive this.
  MemoryUse(ProcSource* proc, std::uint64_t limit, std::uint64_t given, std::uint64_t page)
      : proc_(proc), limit_(limit), given_(given), page_(page) {}

  struct Excess {
    pid_t worker = 0;
    std::uint64_t bytes = 0;
  };
  /// Those of `workers` (each the leader of a process group of its own) that use more than they may; `table`: of now.
  [[nodiscard]] std::vector<Excess> look(const ProcessTable& table, const std::vector<pid_t>& workers);

 private:
  struct Seen {  ///< of one process, when its pages were walked through
    std::uint64_t start_ticks = 0, resident_pages = 0, minor_faults = 0;
    MemoryRollup rollup;
  };

  [[nodiscard]] std::uint64_t own_bytes(const ProcessTable& table, const std::vector<pid_t>& family, bool afresh);
  [[nodiscard]] const Seen* walked(const StatLine& process, bool afresh);

  ProcSource* proc_;
  std::uint64_t limit_, given_, page_;
  std::map<pid_t, Seen> seen_;
};

}  // namespace mprun
