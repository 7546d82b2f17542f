#include "report/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "json/words.h"
#include "report/colors.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr double kWindowSeconds = 4;
constexpr std::uint64_t kEnoughInWindow = 5;  // fewer ended tasks say little about the speed
constexpr int kSmallestBar = 12;
constexpr int kLargestBar = 32;
constexpr int kGap = 2;  // columns between two parts

/// One part of the line; parts with a lower `worth` are dropped first.
struct Part {
  std::string text;
  int width = 0;
  int worth = 0;
  std::string_view color;
};

enum PartIndex : std::size_t {
  kName,
  kBar,
  kCount,
  kPercent,
  kFailed,
  kRetried,
  kPhase,
  kRate,
  kEta,
  kBytes,
  kBusy,
  kParts
};

[[nodiscard]] double fraction_of(const Pulse& pulse) {
  if (!pulse.total || *pulse.total == 0) return 1;
  return std::min(1.0, static_cast<double>(pulse.done) / static_cast<double>(*pulse.total));
}

[[nodiscard]] std::string count_text(const Pulse& pulse) {
  return pulse.total ? fmt::format("{}/{}", pulse.done, *pulse.total) : fmt::format("{} done", pulse.done);
}

[[nodiscard]] std::string percent_text(const Pulse& pulse) {
  return pulse.total ? fmt::format("{}%", static_cast<int>(fraction_of(pulse) * 100)) : "";
}

[[nodiscard]] std::string failed_text(const Pulse& pulse) {
  return pulse.failed != 0 ? fmt::format("{} failed", pulse.failed) : "";
}

[[nodiscard]] std::string retried_text(const Pulse& pulse) {
  return pulse.retried != 0 ? fmt::format("{} retried", pulse.retried) : "";
}

/// The phase, and what is waited for and for how long, unless tasks just run.
[[nodiscard]] std::string phase_text(const Pulse& pulse, double doing_seconds) {
  constexpr double kWorthShowing = 2;
  std::string text = pulse.phase == "running" ? "" : std::string(pulse.phase);
  if (pulse.doing.empty()) return text;
  if (!text.empty()) text += ": ";
  text += one_line(pulse.doing);
  if (doing_seconds >= kWorthShowing) text += " " + format_duration(std::floor(doing_seconds));
  return text;
}

[[nodiscard]] std::string eta_text(const Pulse& pulse, double rate) {
  const bool runs = (pulse.phase.empty() || pulse.phase == "running") && pulse.doing.empty();
  if (!runs || !pulse.total || *pulse.total <= pulse.done || rate <= 0) return {};
  return "ETA " + format_duration(static_cast<double>(*pulse.total - pulse.done) / rate);
}

[[nodiscard]] std::string bytes_text(const Pulse& pulse) { return pulse.bytes != 0 ? size_text(pulse.bytes) : ""; }

[[nodiscard]] std::string busy_text(const Pulse& pulse) {
  return pulse.workers > 0 ? fmt::format("{}/{} busy", pulse.busy, pulse.workers) : "";
}

[[nodiscard]] std::string bar_text(double fraction, int width, bool unicode) {
  const int inner = width - 2;
  const int filled = static_cast<int>(fraction * inner);
  std::string bar = unicode ? "▕" : "[";
  for (int i = 0; i < inner; ++i) {
    if (unicode) {
      bar += i < filled ? "█" : "░";
    } else {
      bar += i < filled ? '=' : i == filled ? '>' : ' ';
    }
  }
  return bar + (unicode ? "▏" : "]");
}

[[nodiscard]] int width_of(const std::array<Part, kParts>& parts) {
  int width = -kGap;
  for (const Part& part : parts) width += part.width > 0 ? part.width + kGap : 0;
  return std::max(width, 0);
}

/// Empties the least worthy parts until the rest fits; false if even the last one does not.
[[nodiscard]] bool fit(std::array<Part, kParts>& parts, int limit) {
  while (width_of(parts) > limit) {
    Part* least = nullptr;
    for (Part& part : parts) {
      if (part.width > 0 && (least == nullptr || part.worth < least->worth)) least = &part;
    }
    if (least == nullptr || least == &parts[kCount]) return false;
    least->width = 0;
  }
  return true;
}

[[nodiscard]] std::string join(const std::array<Part, kParts>& parts, bool color) {
  std::string line;
  for (const Part& part : parts) {
    if (part.width == 0) continue;
    if (!line.empty()) line.append(kGap, ' ');
    if (color && !part.color.empty()) line += part.color;
    line += part.text;
    if (color && !part.color.empty()) line += kReset;
  }
  return line;
}

}  // namespace

std::string format_progress(const Pulse& pulse, const Pace& pace, const ProgressStyle& style) {
  const int limit = style.columns - 1;
  if (limit <= 0) return {};
  std::array<Part, kParts> parts;
  parts[kName] = {style.name, columns_at_most(style.name), 5, kBold};
  parts[kBar] = {"", pulse.total ? kSmallestBar : 0, 4, kGreen};
  parts[kCount] = {count_text(pulse), 0, 11, {}};
  parts[kPercent] = {percent_text(pulse), 0, 8, {}};
  parts[kFailed] = {failed_text(pulse), 0, 10, kRed};
  parts[kRetried] = {retried_text(pulse), 0, 6, {}};
  parts[kPhase] = {phase_text(pulse, pace.doing_seconds), 0, 9, {}};
  parts[kRate] = {pace.rate > 0 ? format_rate(pace.rate) : "", 0, 3, {}};
  parts[kEta] = {eta_text(pulse, pace.rate), 0, 7, {}};
  parts[kBytes] = {bytes_text(pulse), 0, 2, {}};
  parts[kBusy] = {busy_text(pulse), 0, 1, {}};
  for (std::size_t i = kCount; i < kParts; ++i) parts[i].width = columns_at_most(parts[i].text);
  if (parts[kCount].width + kGap + parts[kPhase].width > limit && pulse.phase != "running") {
    parts[kPhase].text = pulse.phase;  // the whole text does not fit
    parts[kPhase].width = static_cast<int>(pulse.phase.size());
  }

  if (!fit(parts, limit)) return parts[kCount].text.substr(0, static_cast<std::size_t>(limit));
  if (Part& bar = parts[kBar]; bar.width > 0) {
    bar.width = std::min(kLargestBar, bar.width + limit - width_of(parts));
    bar.text = bar_text(fraction_of(pulse), bar.width, style.unicode);
  }
  return join(parts, style.color);
}

std::string format_progress_line(const Pulse& pulse, const Pace& pace, const std::string& name) {
  std::string line = fmt::format("{}: {}", name, count_text(pulse));
  if (pulse.total) line += fmt::format(" ({})", percent_text(pulse));
  for (const std::string& text : {failed_text(pulse), retried_text(pulse), phase_text(pulse, pace.doing_seconds),
                                  pace.rate > 0 ? format_rate(pace.rate) : std::string(), eta_text(pulse, pace.rate),
                                  bytes_text(pulse), busy_text(pulse)}) {
    if (!text.empty()) line += ", " + text;
  }
  return line;
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years: as good as never
  const auto whole = std::llround(std::clamp(seconds, 0.0, kLongest));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
}

std::string format_rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f}M/s", per_second / 1e6);
  if (per_second >= 1e4) return fmt::format("{:.1f}k/s", per_second / 1e3);
  if (per_second >= 10) return fmt::format("{:.0f}/s", per_second);
  if (per_second >= 1) return fmt::format("{:.1f}/s", per_second);
  return fmt::format("{:.2g}/s", per_second);
}

void RateWindow::add(double elapsed, std::uint64_t done) {
  if (recent_.empty()) first_ = {elapsed, done};
  recent_.push_back({elapsed, done});
  while (recent_.size() > 2 && recent_[1].elapsed <= elapsed - kWindowSeconds) recent_.pop_front();
}

double RateWindow::per_second() const {
  if (recent_.size() < 2) return 0;
  const Sample& last = recent_.back();
  const Sample& since = last.done - recent_.front().done >= kEnoughInWindow ? recent_.front() : first_;
  const double seconds = last.elapsed - since.elapsed;
  return seconds > 0 ? static_cast<double>(last.done - since.done) / seconds : 0;
}

}  // namespace mprun
