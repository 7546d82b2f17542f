// What `mprun report` prints about a run: a human-readable text, the timeline as Trace Event JSON (which Perfetto and
// chrome://tracing open), and JUnit XML for CI systems; the page is in run_page.h. Pure functions of what was read;
// called by cli/.
#pragma once

#include <string>

#include "record/run_record.h"

namespace mprun {

/// Counts, workers, durations, slowest tasks, failures by cause, retries, deaths, hangs, warnings.
[[nodiscard]] std::string run_text(const RunRecord& run);

/// Every attempt and every phase of a start as a complete event ("ph":"X") on the track of its worker or host; times in
/// microseconds from the first one. One that ends after its worker's next one begins, through rounding or another
/// clock, is cut: Perfetto drops events that overlap on a track (perfetto.dev/docs/faq).
[[nodiscard]] std::string run_trace(const RunRecord& run);

/// A test suite with a test case for every task that ended; failed ones carry their error, cancelled ones are skipped.
[[nodiscard]] std::string run_junit(const RunRecord& run);

/// What run_text and others count.
struct WorkerFigures {
  int worker = 0;
  std::uint64_t attempts = 0;
  double busy = 0;  ///< seconds
};
struct RunFigures {
  std::uint64_t ok = 0, failed = 0, cancelled = 0, retried = 0;
  double begin = 0, end = 0;           ///< of the first and the last attempt, seconds since 1970
  std::vector<WorkerFigures> workers;  ///< by number
  std::vector<double> durations;       ///< of ended tasks, ascending; seconds
  std::vector<std::size_t> slowest;    ///< indices of attempts, the longest first
  [[nodiscard]] std::uint64_t done() const { return ok + failed + cancelled; }
  /// That many seconds as a percentage of the time between `begin` and `end`.
  [[nodiscard]] long percent(double seconds) const;
  /// The busy time of all workers together, as a percentage.
  [[nodiscard]] long percent_busy() const;
};
[[nodiscard]] RunFigures figures_of(const RunRecord& run);

/// The attempts that began, by worker, and by start within one.
[[nodiscard]] std::vector<const RunRecord::Attempt*> attempts_by_worker(const RunRecord& run);

/// "12us", "3.5ms", "1.50s", "3m20s".
[[nodiscard]] std::string brief_seconds(double seconds);
/// Of values in ascending order; there is at least one.
[[nodiscard]] double percentile(const std::vector<double>& ascending, double part);
/// "ok", "failed", "cancelled", "tried again".
[[nodiscard]] const char* end_name(RunRecord::End end);
/// "worker 3", "host".
[[nodiscard]] std::string process_name(const RunRecord::Process& process);

}  // namespace mprun
