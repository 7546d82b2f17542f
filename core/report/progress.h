// The progress of a job as one line of text: what to show, how fast it goes, what fits. Pure functions of their inputs,
// called by TextReport, which writes the line.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "events/job_event.h"

namespace mprun {

struct ProgressStyle {
  std::string name;  ///< of the job, already printable
  int columns = 80;  ///< of the terminal
  bool color = false;
  bool unicode = false;
};

/// What earlier pulses have shown.
struct Pace {
  double rate = 0;           ///< tasks a second, 0 if unknown
  double doing_seconds = 0;  ///< how long Pulse::doing has been the same
};

/// The live line, e.g. `digits  [==> ]  1234/1797  69%  3 failed  1 retried  512/s  ETA 2s  1.2 MiB  4/4 busy`: if
/// columns are few, the less important parts are dropped first; it never takes more than columns - 1.
[[nodiscard]] std::string format_progress(const Pulse& pulse, const Pace& pace, const ProgressStyle& style);

/// The same facts as one plain line without a bar: `digits: 720/1797 (40%), 3 failed, 512/s, ETA 2s, 4/4 busy`.
[[nodiscard]] std::string format_progress_line(const Pulse& pulse, const Pace& pace, const std::string& name);

/// "2s", "3m20s", "1h05m", "2d03h".
[[nodiscard]] std::string format_duration(double seconds);

/// How long Pulse::doing has been the same.
class PhaseClock {
 public:
  /// Call it at every pulse; returns seconds.
  double see(const Pulse& pulse) {
    if (doing_ != pulse.doing) {
      doing_ = pulse.doing;
      since_ = pulse.elapsed;
    }
    return pulse.elapsed - since_;
  }

 private:
  std::string doing_;
  double since_ = 0;
};

/// "0.25/s", "3.4/s", "512/s", "12.3k/s", "1.2M/s".
[[nodiscard]] std::string format_rate(double per_second);

/// Throughput over the last few seconds, or over the whole job if too little ended in them.
class RateWindow {
 public:
  /// Takes the seconds since the job began and the tasks done so far; call it at most ten times a second.
  void add(double elapsed, std::uint64_t done);
  /// Tasks a second; 0 while it is unknown.
  [[nodiscard]] double per_second() const;

 private:
  struct Sample {
    double elapsed;
    std::uint64_t done;
  };
  std::deque<Sample> recent_;
  Sample first_{};
};

}  // namespace mprun
