// JobLog: writes the events of a job into mprun's log. A Sink in mprun's one thread. What it finds worth reading of a
// usual job is at LogLevel::kInfo; what every task or command brings is below that.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "events/job_event.h"
#include "report/log_file.h"

namespace mprun {

class JobLog : public Sink {
 public:
  /// `log` outlives it.
  explicit JobLog(LogFile* log) : log_(log) {}
  /// Brings the lines so far to the file at every Pulse.
  void on_event(const JobEvent& event) override;

 private:
  void write(const TaskEnded& ended);
  void write(const TaskRetried& retried);
  void write(const WorkerStarted& started);
  void write(const WorkerStage& stage);
  void write(const WorkerEnded& ended);
  void write(const Notice& notice);
  void write(const HangFound& hang);
  void write(const WorkersSeen& /*seen*/) {}
  void write(const Pulse& pulse);
  void write(const Suspended& suspended);

  LogFile* log_;
  std::uint64_t failures_ = 0, retries_ = 0;
  std::string phase_, doing_;  ///< of the last Pulse
};

}  // namespace mprun
