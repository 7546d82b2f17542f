// MetricsFile: the figures of a running job for a monitoring system, in the text format of OpenMetrics 1.0, which the
// textfile collector of Prometheus' node exporter reads as well. A sink of the supervisor: the file is replaced as a
// whole about every second, and at the end of the job. One that cannot be written does not harm the run.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/result.h"
#include "events/job_event.h"
#include "report/progress.h"

namespace mprun {

/// What the file shows, as of one pulse.
struct JobMetrics {
  std::string job;  ///< its name, the label of every sample
  Pulse pulse;      ///< the last one; its views are not used
  bool running = true;
  double rate = 0;           ///< tasks a second, as the progress line shows it
  std::uint64_t memory = 0;  ///< bytes of all workers, with their descendants
  /// Hangs reported in this session, by verdict, in the order of kHangVerdicts.
  static constexpr std::array<std::string_view, 5> kHangVerdicts = {"deadlock", "partial-deadlock", "orphaned-lock",
                                                                    "stalled", "overdue"};
  std::array<std::uint64_t, kHangVerdicts.size()> hangs{};
};

/// The text of the file: HELP, TYPE and samples of each metric, then "# EOF". Pure.
[[nodiscard]] std::string openmetrics_text(const JobMetrics& metrics);

class MetricsFile : public Sink {
 public:
  /// `path`: absolute; `job`: the name of the job.
  MetricsFile(std::string path, std::string job) : path_(std::move(path)) { metrics_.job = std::move(job); }

  void on_event(const JobEvent& event) override;
  /// Why the file is old or not there; the first failure.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void take(const Pulse& pulse);
  void count(const HangFound& hang);
  void write();

  std::string path_;
  JobMetrics metrics_;
  RateWindow rate_;
  double next_rate_ = 0, next_write_ = 0;  ///< seconds since the job began
  std::optional<Error> failure_;
};

}  // namespace mprun
