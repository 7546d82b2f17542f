// The text of a point in time, in the form that all records of mprun use.
#pragma once

#include <ctime>
#include <string>

#include "base/clock.h"

namespace mprun {

/// A wall-clock time in UTC with milliseconds (RFC 3339): "2026-01-02T03:04:05.678Z".
[[nodiscard]] inline std::string utc_text(Nanos wall) {
  const auto seconds = static_cast<std::time_t>(wall / kNanosPerSecond);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[48];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string millis = std::to_string(1000 + wall % kNanosPerSecond / kNanosPerMilli);
  return std::string(text, length) + "." + millis.substr(1) + "Z";
}

}  // namespace mprun
