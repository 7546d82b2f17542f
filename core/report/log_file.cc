#include "report/log_file.h"

// The file is closed on exec.
#define SPDLOG_PREVENT_CHILD_FD
#define SPDLOG_FMT_EXTERNAL 1
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "json/json.h"
#include "os/fd.h"
#include "os/file_sync.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e%z %-7l %-8n %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","component":"%n","text":%v})";

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                  spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels.at(static_cast<std::size_t>(level));
}

// What is not UTF-8 is replaced: readers of the log may be strict.
std::string json_string(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string indented_lines(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

}  // namespace

/// One logger for each component, in one file.
class LogFile::Loggers {
 public:
  using OnError = std::function<void(const std::string& reason)>;

  Loggers(const std::string& path, LogFormat format, const OnError& on_error)
      : sink_(std::make_shared<spdlog::sinks::basic_file_sink_st>(path)) {
    const char* pattern = format == LogFormat::kJson ? kJsonPattern : kTextPattern;
    sink_->set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
    for (const LogComponent component : kLogComponents) {
      auto& logger = loggers_.emplace_back(std::string(to_string(component)), sink_);
      logger.set_level(spdlog::level::trace);
      logger.flush_on(spdlog::level::warn);
      logger.set_error_handler(on_error);
    }
  }

  [[nodiscard]] const std::string& path() const { return sink_->filename(); }
  [[nodiscard]] spdlog::logger& of(LogComponent component) { return loggers_.at(static_cast<std::size_t>(component)); }

 private:
  std::shared_ptr<spdlog::sinks::basic_file_sink_st> sink_;
  std::vector<spdlog::logger> loggers_;
};

LogFile::LogFile(const std::string& path, LogFormat format, const LogLevels& levels)
    : format_(format), levels_(levels) {
  try {
    loggers_ = std::make_unique<Loggers>(path, format, [this, path](const std::string& reason) { fail(path, reason); });
  } catch (const spdlog::spdlog_ex& error) {
    fail(path, error.what());
  }
}

LogFile::~LogFile() { flush(); }

bool LogFile::takes(LogComponent component, LogLevel level) const {
  return !failure_ && level >= levels_.of(component) && level != LogLevel::kOff;
}

void LogFile::write(LogComponent component, LogLevel level, std::string_view text) {
  if (!takes(component, level)) return;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::string shown = format_ == LogFormat::kJson ? json_string(text) : indented_lines(text);
  loggers_->of(component).log(spdlog_level(level), spdlog::string_view_t(shown));
}

void LogFile::flush() {
  if (!failure_) loggers_->of(LogComponent::kRecord).flush();
}

void LogFile::sync() {
  flush();
  if (failure_) return;
  const std::string path = loggers_->path();
  const Fd file = open_fd(path, O_WRONLY);
  if (const int failed = file ? sync_now(file.get()) : errno; failed != 0) fail(path, std::strerror(failed));
}

void LogFile::fail(const std::string& path, const std::string& reason) {
  if (!failure_) failure_ = internal_error(path + " ends here: " + reason);
}

}  // namespace mprun
