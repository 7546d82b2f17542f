// Writes numbers and literals into a char array, for the lines of results.jsonl and joblog.tsv: a million lines a
// second leave no time for streams or locales. Private to core/record; owns nothing.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/clock.h"

namespace mprun {

/// Room that put_number() and put_seconds() need at most, in bytes.
inline constexpr std::size_t kNumberRoom = 32;

/// Copies `text` to `out` and returns the end.
inline char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

/// Writes an integer in decimal and returns the end; `out` has kNumberRoom bytes.
template <typename Integer>
char* put_number(char* out, Integer number) {
  return std::to_chars(out, out + kNumberRoom, number).ptr;
}

/// Writes nanoseconds as seconds with exactly kDecimals decimals (rounded; a negative time is 0) and returns the end.
template <int kDecimals>
char* put_seconds(char* out, Nanos time) {
  static_assert(kDecimals >= 1 && kDecimals <= 9);
  std::uint64_t per_second = 1;
  for (int i = 0; i < kDecimals; ++i) per_second *= 10;
  const std::uint64_t nanos_per_tick = static_cast<std::uint64_t>(kNanosPerSecond) / per_second;
  const std::uint64_t nanos = time > 0 ? static_cast<std::uint64_t>(time) : 0;
  const std::uint64_t ticks = (nanos + nanos_per_tick / 2) / nanos_per_tick;
  out = put_number(out, ticks / per_second);
  *out++ = '.';
  std::uint64_t fraction = ticks % per_second;
  for (char* digit = out + kDecimals; digit != out; fraction /= 10) *--digit = static_cast<char>('0' + fraction % 10);
  return out + kDecimals;
}

}  // namespace mprun
