// Log: mprun's own log, as the parts that write into it see it. Most lines come from the events of the job
// (report/job_log.h); parts that know more than there are events for get a Log as a parameter. The file itself is
// report/log_file.h.
#pragma once

#include <array>
#include <string_view>

#include "base/result.h"

namespace mprun {

enum class LogComponent { kLaunch, kSchedule, kWatch, kRecord, kCluster };
enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

/// "launch", "schedule", "watch", "record", "cluster".
[[nodiscard]] std::string_view to_string(LogComponent component);
/// "trace", "debug", "info", "warning", "error", "off".
[[nodiscard]] std::string_view to_string(LogLevel level);

inline constexpr std::array kLogComponents = {LogComponent::kLaunch, LogComponent::kSchedule, LogComponent::kWatch,
                                              LogComponent::kRecord, LogComponent::kCluster};

/// The lowest level that is written of each component; kInfo unless set.
class LogLevels {
 public:
  LogLevels() { levels_.fill(LogLevel::kInfo); }
  /// Sets what `text` names: "debug" for all components, "watch=debug,launch=trace" for some. Errors: what is wrong
  /// with it, and what is allowed; nothing is set then.
  [[nodiscard]] Result<void> set(std::string_view text);
  [[nodiscard]] LogLevel of(LogComponent component) const { return levels_[static_cast<std::size_t>(component)]; }

 private:
  std::array<LogLevel, kLogComponents.size()> levels_{};
};

class Log {
 public:
  virtual ~Log() = default;
  /// To be asked first where the text takes time to make.
  [[nodiscard]] virtual bool takes(LogComponent component, LogLevel level) const = 0;
  /// Writes a line, if it is wanted. Never waits but for an ordinary buffered write. `text` may have several lines.
  virtual void write(LogComponent component, LogLevel level, std::string_view text) = 0;
};

/// The same for a log that may be nullptr: there is none.
[[nodiscard]] inline bool takes(const Log* log, LogComponent component, LogLevel level) {
  return log != nullptr && log->takes(component, level);
}

}  // namespace mprun
