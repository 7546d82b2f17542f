#include "record/result_line.h"

#include <charconv>

#include "base/decimal.h"

namespace mprun {
namespace {

bool take_number(std::string_view* rest, double* number) { return take_decimal(rest, number); }
template <typename Integer>
bool take_number(std::string_view* rest, Integer* number) {
  const auto parsed = std::from_chars(rest->data(), rest->data() + rest->size(), *number);
  if (parsed.ec != std::errc()) return false;
  rest->remove_prefix(static_cast<std::size_t>(parsed.ptr - rest->data()));
  return true;
}

// Takes `key` and the number after it off the front of `*rest`.
template <typename Number>
bool take_field(std::string_view* rest, std::string_view key, Number* number) {
  if (rest->substr(0, key.size()) != key) return false;
  rest->remove_prefix(key.size());
  return take_number(rest, number);
}

bool take_status(std::string_view* rest, ResultLine* line) {
  struct Head {
    std::string_view text;
    TaskStatus status;
  };
  for (const Head& head : {Head{R"(,"status":"ok","value":)", TaskStatus::kOk},
                           Head{R"(,"status":"failed","error":)", TaskStatus::kFailed},
                           Head{R"(,"status":"cancelled","error":)", TaskStatus::kCancelled}}) {
    if (rest->substr(0, head.text.size()) != head.text) continue;
    rest->remove_prefix(head.text.size());
    line->status = head.status;
    return true;
  }
  return false;
}

}  // namespace

std::optional<ResultLine> split_result_line(std::string_view line) {
  constexpr std::string_view kTail = R"(,"worker":)";
  ResultLine result;
  std::string_view rest = line;
  if (!take_field(&rest, R"({"task":)", &result.task) || !take_status(&rest, &result)) return std::nullopt;
  const std::size_t tail = rest.rfind(kTail);  // only numbers follow
  if (tail == rest.npos) return std::nullopt;
  result.payload = rest.substr(0, tail);
  rest.remove_prefix(tail);
  const bool whole = take_field(&rest, kTail, &result.worker) && take_field(&rest, R"(,"attempt":)", &result.attempt) &&
                     take_field(&rest, R"(,"start":)", &result.start) &&
                     take_field(&rest, R"(,"seconds":)", &result.seconds) && rest == "}";
  return whole ? std::optional(result) : std::nullopt;
}

}  // namespace mprun
