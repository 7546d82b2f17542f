// The progress of a job as one line of text: what to show, how fast it goes, what fits. Pure functions of
// their inputs, called by TextReport, which does the writing.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "supervise/job_event.h"

namespace mprun {

struct ProgressStyle {
  std::string name;  ///< of the job, already printable
  int columns = 80;  ///< of the terminal
  bool color = false;
  bool unicode = false;
};

/// What is known from the pulses before.
struct Pace {
  double rate = 0;           ///< tasks a second, 0 if unknown
  double doing_seconds = 0;  ///< since when Pulse::doing has been what it is
};

/// The live line, e.g. `digits  [==> ]  1234/1797  69%  3 failed  1 retried  512/s  ETA 2s  1.2 MiB  4/4 busy`: the
/// less important parts go first where columns are few; it never takes more than columns - 1.
[[nodiscard]] std::string format_progress(const Pulse& pulse, const Pace& pace, const ProgressStyle& style);

/// The same facts as one plain line without a bar: `digits: 720/1797 (40%), 3 failed, 512/s, ETA 2s, 4/4 busy`.
[[nodiscard]] std::string format_progress_line(const Pulse& pulse, const Pace& pace, const std::string& name);

/// "2s", "3m20s", "1h05m", "2d03h".
[[nodiscard]] std::string format_duration(double seconds);

/// How long Pulse::doing has been what it is.
class PhaseClock {
 public:
  /// Told every pulse; seconds.
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

/// Throughput over the last few seconds; where too little ended in them, over the whole job.
class RateWindow {
 public:
  /// Told now and then (at most ten times a second): seconds since the job began, and tasks done so far.
  void add(double elapsed, std::uint64_t done);
  /// Tasks a second; 0 as long as nothing is known.
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
