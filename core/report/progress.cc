#include "report/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <spdlog/fmt/fmt.h>

#include "report/safe_text.h"

namespace mprun {
namespace {

constexpr double kWindowSeconds = 4;
constexpr std::uint64_t kEnoughInWindow = 5;  // fewer ended tasks say little about the speed
constexpr int kSmallestBar = 12;
constexpr int kLargestBar = 32;
constexpr int kGap = 2;  // columns between two parts

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kReset = "\x1b[0m";

/// One part of the line; those with a lower `worth` go first.
struct Part {
  std::string text;
  int width = 0;
  int worth = 0;
  const char* color = nullptr;
};

enum PartIndex : std::size_t { kName, kBar, kCount, kPercent, kFailed, kRate, kEta, kBusy, kParts };

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

/// The time left; or the phase, where that says more.
[[nodiscard]] std::string eta_text(const Pulse& pulse, double rate) {
  if (!pulse.phase.empty() && pulse.phase != "running") return std::string(pulse.phase);
  if (!pulse.total || *pulse.total <= pulse.done || rate <= 0) return {};
  return "ETA " + format_duration(static_cast<double>(*pulse.total - pulse.done) / rate);
}

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
    if (color && part.color != nullptr) line += part.color;
    line += part.text;
    if (color && part.color != nullptr) line += kReset;
  }
  return line;
}

}  // namespace

std::string format_progress(const Pulse& pulse, double rate, const ProgressStyle& style) {
  const int limit = style.columns - 1;
  if (limit <= 0) return {};
  std::array<Part, kParts> parts;
  parts[kName] = {style.name, columns_at_most(style.name), 4, kBold};
  parts[kBar] = {"", pulse.total ? kSmallestBar : 0, 3, kGreen};
  parts[kCount] = {count_text(pulse), 0, 8, nullptr};
  parts[kPercent] = {percent_text(pulse), 0, 6, nullptr};
  parts[kFailed] = {failed_text(pulse), 0, 7, kRed};
  parts[kRate] = {rate > 0 ? format_rate(rate) : "", 0, 2, nullptr};
  parts[kEta] = {eta_text(pulse, rate), 0, 5, nullptr};
  parts[kBusy] = {busy_text(pulse), 0, 1, nullptr};
  for (std::size_t i = kCount; i < kParts; ++i) parts[i].width = static_cast<int>(parts[i].text.size());

  if (!fit(parts, limit)) return parts[kCount].text.substr(0, static_cast<std::size_t>(limit));
  if (Part& bar = parts[kBar]; bar.width > 0) {
    bar.width = std::min(kLargestBar, bar.width + limit - width_of(parts));
    bar.text = bar_text(fraction_of(pulse), bar.width, style.unicode);
  }
  return join(parts, style.color);
}

std::string format_progress_line(const Pulse& pulse, double rate, const std::string& name) {
  std::string line = fmt::format("{}: {}", name, count_text(pulse));
  if (pulse.total) line += fmt::format(" ({})", percent_text(pulse));
  for (const std::string& text :
       {failed_text(pulse), rate > 0 ? format_rate(rate) : std::string(), eta_text(pulse, rate), busy_text(pulse)}) {
    if (!text.empty()) line += ", " + text;
  }
  return line;
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years: "never" would do as well
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
