#include "json/json.h"

#include <string>

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace mprun {
namespace {

constexpr std::size_t kEscape = 6;  // of \ud83d
constexpr std::string_view kHigh = "89abAB", kLow = "cdefCDEF";

/// Whether half of a surrogate pair stands at `at`, by its second digit.
bool is_half(std::string_view text, std::size_t at, std::string_view digits) {
  return at + kEscape <= text.size() && text[at] == '\\' && text[at + 1] == 'u' &&
         (text[at + 2] == 'd' || text[at + 2] == 'D') && digits.find(text[at + 3]) != digits.npos;
}

std::string without_halves(std::string_view text) {
  std::string whole(text);
  for (std::size_t at = whole.find('\\'); at != whole.npos; at = whole.find('\\', at)) {
    if (is_half(whole, at, kHigh) && is_half(whole, at + kEscape, kLow)) {
      at += 2 * kEscape;
      continue;
    }
    if (is_half(whole, at, kHigh) || is_half(whole, at, kLow)) whole.replace(at + 2, kEscape - 2, "fffd");
    at += 2;
  }
  return whole;
}

}  // namespace

Json parse_json(std::string_view text) { return Json::parse(text, nullptr, false); }

Json parse_escaped_json(std::string_view text) {
  Json value = parse_json(text);
  return value.is_discarded() ? parse_json(without_halves(text)) : value;
}

}  // namespace mprun
