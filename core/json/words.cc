#include "json/words.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/decimal.h"
#include "json/json.h"

namespace mprun {

namespace {

constexpr std::size_t kLongestName = 100;  // longer ones are not typing errors, and would need a large table

std::size_t typing_errors(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

double unit_seconds(std::string_view unit) {
  if (unit == "ms") return 0.001;
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  if (unit == "d") return 86400;
  return 0;
}

double unit_bytes(std::string_view unit) {
  double bytes = 1;
  for (const char* known : {"KiB", "MiB", "GiB", "TiB"}) {
    bytes *= 1024;
    if (unit == known) return bytes;
  }
  bytes = 1;
  if (unit == "B") return bytes;
  for (const char* known : {"kB", "MB", "GB", "TB"}) {
    bytes *= 1000;
    if (unit == known) return bytes;
  }
  return 0;
}

}  // namespace

std::string clip(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string preview(const Json& value) {
  constexpr std::size_t kLargest = 16;
  if (value.is_structured() && value.size() > kLargest) {
    return value.is_array() ? "a list of " + std::to_string(value.size()) + " values"
                            : "an object of " + std::to_string(value.size()) + " keys";
  }
  if (value.is_string()) return in_quotes(clip(value.get_ref<const std::string&>()));
  return clip(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string in_quotes(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string quoted_list(const std::vector<std::string>& names, std::string_view last) {
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? last : std::string_view(", ");
    result += in_quotes(names[i]);
  }
  return result;
}

std::string comma_list(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  const std::string wanted = lower(name);
  const std::size_t allowed_errors = std::min<std::size_t>(3, (name.size() + 2) / 3);
  std::optional<std::string> best;
  std::size_t best_errors = allowed_errors + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t errors = typing_errors(wanted, lower(candidate));
    if (errors < best_errors && errors < candidate.size()) {
      best_errors = errors;
      best = candidate;
    }
  }
  return best;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", size, kUnits[unit]);
  return text.data();
}

std::optional<std::uint64_t> size_bytes(const Json& value) {
  constexpr double kMost = 9223372036854775807.0;  // 2^63 as a double
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return std::nullopt;  // below zero
  if (!value.is_string()) return std::nullopt;
  std::string_view rest = value.get_ref<const std::string&>();
  double number = 0;
  if (!take_decimal(&rest, &number)) return std::nullopt;
  const double unit = unit_bytes(rest);
  if (unit == 0 || number * unit >= kMost) return std::nullopt;
  return static_cast<std::uint64_t>(number * unit);
}

std::optional<double> duration_seconds(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  std::string_view rest = value.get_ref<const std::string&>();
  if (rest.empty()) return std::nullopt;
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    if (rest.front() == '.' || !take_decimal(&rest, &number)) return std::nullopt;
    const std::size_t unit_end = std::min(rest.find_first_of("0123456789."), rest.size());
    const double unit = unit_seconds(rest.substr(0, unit_end));
    if (unit == 0) return std::nullopt;
    total += number * unit;
    rest.remove_prefix(unit_end);
  }
  return total;
}

}  // namespace mprun
