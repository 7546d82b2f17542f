#include "base/log.h"

#include <algorithm>
#include <optional>
#include <string>

namespace mprun {
namespace {

constexpr std::array<std::string_view, kLogComponents.size()> kComponentNames = {"launch", "schedule", "watch",
                                                                                 "record", "cluster"};
constexpr std::array<std::string_view, 6> kLevelNames = {"trace", "debug", "info", "warning", "error", "off"};

template <typename Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

template <std::size_t N>
std::string list_of(const std::array<std::string_view, N>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::string_view to_string(LogComponent component) { return kComponentNames.at(static_cast<std::size_t>(component)); }
std::string_view to_string(LogLevel level) { return kLevelNames.at(static_cast<std::size_t>(level)); }

Result<void> LogLevels::set(std::string_view text) {
  LogLevels changed = *this;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    const std::size_t equals = part.find('=');
    const std::string_view level_name = equals == part.npos ? part : part.substr(equals + 1);
    const auto level = find_name<LogLevel>(kLevelNames, level_name);
    if (!level) return usage_error("found " + std::string(part) + ", allowed levels: " + list_of(kLevelNames));
    if (equals == part.npos) {
      changed.levels_.fill(*level);
      continue;
    }
    const auto component = find_name<LogComponent>(kComponentNames, part.substr(0, equals));
    if (!component)
      return usage_error("found " + std::string(part) + ", allowed components: " + list_of(kComponentNames));
    changed.levels_.at(static_cast<std::size_t>(*component)) = *level;
  }
  *this = changed;
  return {};
}

}  // namespace mprun
