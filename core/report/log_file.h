// LogFile: mprun.log of a run directory, written by spdlog without a thread: a line goes into the buffer of the file,
// and from there to the file when the buffer is full, at a warning, and at flush(). A file that cannot be written does
// not harm the run. Used by mprun's one thread; owns the file, which is closed in whatever mprun starts.
//
//   2026-11-25T10:52:06.123+00:00 info    launch   worker 0 started (pid 99)            LogFormat::kText
//   {"time":"...","level":"info","component":"launch","text":"worker 0 started (pid 99)"}             kJson
//
// Further lines of one text are indented.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/log.h"

namespace mprun {

class LogFile : public Log {
 public:
  /// Appends to the file, and creates it if there is none.
  LogFile(const std::string& path, LogFormat format, const LogLevels& levels);
  ~LogFile() override;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  [[nodiscard]] bool takes(LogComponent component, LogLevel level) const override;
  void write(LogComponent component, LogLevel level, std::string_view text) override;
  void flush();
  /// Flushes, and brings the file to disk; no power cut takes away what was written before.
  void sync();
  /// Why lines are missing; the first failure, after which nothing more is written.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  class Loggers;
  void fail(const std::string& path, const std::string& reason);

  LogFormat format_;
  LogLevels levels_;
  std::optional<Error> failure_;
  std::unique_ptr<Loggers> loggers_;
};

}  // namespace mprun
