// PlainProgress: progress for a pipe, a file or the log of a CI system: whole lines, now and then. Used by TextReport;
// owns the time of its last line.
#pragma once

#include <optional>
#include <string>

#include "events/job_event.h"
#include "report/progress.h"

namespace mprun {

class PlainProgress {
 public:
  /// `name`: of the job, printable; `processes`: for the first line, 0: left out.
  PlainProgress(std::string name, int processes) : name_(std::move(name)), processes_(processes) {}

  /// The line that is due, without its newline. While something is waited for, a line comes after ten seconds of
  /// silence, and then ever more rarely.
  [[nodiscard]] std::optional<std::string> next(const Pulse& pulse, const Pace& pace);

 private:
  [[nodiscard]] std::string first_line(const Pulse& pulse) const;
  [[nodiscard]] bool is_due(const Pulse& pulse);
  [[nodiscard]] bool breaks_silence(const Pulse& pulse);

  std::string name_;
  int processes_;
  bool started_ = false;
  double last_elapsed_ = 0;
  double last_percent_ = 0;
  std::optional<double> waiting_since_;
  double patience_ = 0;  ///< seconds of silence that are allowed now
};

}  // namespace mprun
