#include "report/job_log.h"

#include <fmt/format.h>

#include "report/event_text.h"

namespace mprun {
namespace {

constexpr std::uint64_t kMostAtInfo = 10;  // that a reader sees without asking for more

/// Of things that may happen a million times.
LogLevel level_of(std::uint64_t count) { return count <= kMostAtInfo ? LogLevel::kInfo : LogLevel::kDebug; }

/// A command is a process for each task.
LogLevel level_of(std::string_view role) { return role == "command" ? LogLevel::kDebug : LogLevel::kInfo; }

LogLevel level_of(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kInfo:
      return LogLevel::kInfo;
    case Notice::Kind::kWarning:
      return LogLevel::kWarning;
    case Notice::Kind::kError:
      return LogLevel::kError;
    case Notice::Kind::kExplain:
      return LogLevel::kDebug;
  }
  return LogLevel::kError;
}

}  // namespace

void JobLog::on_event(const JobEvent& event) {
  std::visit([this](const auto& known) { write(known); }, event);
}

void JobLog::write(const TaskEnded& ended) {
  const LogLevel level = ended.status == TaskStatus::kOk          ? LogLevel::kTrace
                         : ended.status == TaskStatus::kCancelled ? LogLevel::kDebug
                                                                  : level_of(++failures_);
  if (log_->takes(LogComponent::kSchedule, level)) log_->write(LogComponent::kSchedule, level, event_text(ended));
}

void JobLog::write(const TaskRetried& retried) {
  const LogLevel level = level_of(++retries_);
  if (log_->takes(LogComponent::kSchedule, level)) log_->write(LogComponent::kSchedule, level, event_text(retried));
}

void JobLog::write(const WorkerStarted& started) {
  const LogLevel level = level_of(started.role);
  if (log_->takes(LogComponent::kLaunch, level)) log_->write(LogComponent::kLaunch, level, event_text(started));
}

void JobLog::write(const WorkerStage& stage) {
  const std::string who = stage.worker < 0 ? "host" : fmt::format("worker {}", stage.worker);
  const std::string what = stage.text.empty() ? " is ready" : fmt::format(": {}", stage.text);
  log_->write(LogComponent::kLaunch, LogLevel::kDebug, who + what);
}

void JobLog::write(const WorkerEnded& ended) {
  const LogLevel level = ended.expected ? level_of(ended.role) : LogLevel::kWarning;
  if (log_->takes(LogComponent::kLaunch, level)) log_->write(LogComponent::kLaunch, level, event_text(ended));
}

void JobLog::write(const Notice& notice) { log_->write(notice.from, level_of(notice.kind), notice.text); }

void JobLog::write(const HangFound& hang) {
  const std::string file = hang.file.empty() ? "" : fmt::format(", see {}", hang.file);
  log_->write(LogComponent::kWatch, LogLevel::kWarning,
              fmt::format("found: {}, {}{}\n{}", hang.verdict, hang.cause, file, hang.text));
}

void JobLog::write(const Pulse& pulse) {
  if (pulse.phase != phase_) {
    phase_ = pulse.phase;
    log_->write(LogComponent::kSchedule, LogLevel::kInfo,
                fmt::format("{}: {} of {} tasks done, {} failed, {} retried", phase_, pulse.done,
                            pulse.total ? std::to_string(*pulse.total) : "unknown", pulse.failed, pulse.retried));
  }
  if (pulse.doing != doing_) {
    doing_ = pulse.doing;
    if (!doing_.empty()) log_->write(LogComponent::kSchedule, LogLevel::kDebug, doing_);
  }
  log_->flush();
}

void JobLog::write(const Suspended& /*suspended*/) {
  log_->write(LogComponent::kSchedule, LogLevel::kInfo, "stopped by Ctrl-Z");
  log_->flush();
}

}  // namespace mprun
