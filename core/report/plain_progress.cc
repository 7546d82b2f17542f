#include "report/plain_progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace mprun {
namespace {

constexpr double kSeconds = 10;
constexpr double kPercentStep = 10;
constexpr double kLongestSilence = 300;  // CI systems end jobs that print nothing for ten minutes

}  // namespace

std::optional<std::string> PlainProgress::next(const Pulse& pulse, const Pace& pace) {
  const bool silent = breaks_silence(pulse);
  if (!started_) {
    started_ = true;
    last_elapsed_ = pulse.elapsed;
    return first_line(pulse);
  }
  if (!(silent || (pulse.doing.empty() && is_due(pulse)))) return std::nullopt;
  last_elapsed_ = pulse.elapsed;
  return format_progress_line(pulse, pace, name_);
}

std::string PlainProgress::first_line(const Pulse& pulse) const {
  std::string text = name_ + ": started";
  if (pulse.total) text += fmt::format(", {} {}", *pulse.total, *pulse.total == 1 ? "task" : "tasks");
  if (processes_ > 0) text += fmt::format(", {} processes", processes_);
  return text;
}

bool PlainProgress::is_due(const Pulse& pulse) {
  if (pulse.elapsed - last_elapsed_ < kSeconds) return false;
  if (!pulse.total) return true;
  const double total = *pulse.total > 0 ? static_cast<double>(*pulse.total) : 1;
  const double percent = 100 * static_cast<double>(pulse.done) / total;
  if (percent - last_percent_ < kPercentStep) return false;
  last_percent_ = percent;
  return true;
}

bool PlainProgress::breaks_silence(const Pulse& pulse) {
  if (pulse.doing.empty()) {
    waiting_since_.reset();
    return false;
  }
  if (!waiting_since_) {
    waiting_since_ = pulse.elapsed;
    patience_ = kSeconds;
  }
  if (pulse.elapsed - std::max(last_elapsed_, *waiting_since_) < patience_) return false;
  patience_ = std::min(2 * patience_, kLongestSilence);
  return true;
}

}  // namespace mprun
