// UsageRecord: CPU and memory of a run's workers over time, for the page of `mprun report`; read from usage.jsonl of a
// run directory, one line for every look at the workers:
//
//   {"at": seconds since 1970, "workers": [[worker, CPU seconds used in this session, bytes of PSS], ...]}
//
// The seconds restart from 0 where another process has taken the worker's place. Owns at most kMostCells pairs of
// numbers, however long the run: if there are more looks, several become one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mprun {

struct UsageRecord {
  struct Use {
    double cpu_seconds = 0;  ///< used in the step
    double bytes = 0;        ///< the most that a look of the step found
  };
  /// What happened between two looks.
  struct Step {
    double begin = 0, end = 0;  ///< since 1970; the first step of a session begins with it
    double bytes = 0;           ///< of all workers together, the most that a look found
    std::map<int, Use> workers;
    bool first = false;  ///< of a session: no look came before it
  };
  std::vector<Step> steps;  ///< in order of time

  static constexpr std::size_t kMostCells = 200'000;  ///< of workers in steps
  static constexpr std::size_t kMostSteps = 2'000;
};

/// nullopt: nothing was recorded. `sessions`: when each began, ascending. Lines that are torn or hold something else
/// are skipped.
[[nodiscard]] std::optional<UsageRecord> read_usage(const std::string& run_dir, const std::vector<double>& sessions);

}  // namespace mprun
