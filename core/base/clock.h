// Time as plain numbers: nanoseconds in 64 bits, monotonic for deadlines, wall clock for records.
// Pure modules take `now` as an argument; only shells read the clock.
#pragma once

#include <cstdint>
#include <ctime>

namespace mprun {

/// Nanoseconds; since boot for deadlines (CLOCK_MONOTONIC), since 1970 for records (CLOCK_REALTIME).
using Nanos = std::int64_t;

inline constexpr Nanos kNanosPerSecond = 1'000'000'000;
inline constexpr Nanos kNanosPerMilli = 1'000'000;

[[nodiscard]] inline Nanos read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<Nanos>(t.tv_sec) * kNanosPerSecond + t.tv_nsec;
}
[[nodiscard]] inline Nanos monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
[[nodiscard]] inline Nanos wall_now() { return read_clock(CLOCK_REALTIME); }

[[nodiscard]] constexpr Nanos from_seconds(double seconds) {
  return static_cast<Nanos>(seconds * static_cast<double>(kNanosPerSecond));
}
[[nodiscard]] constexpr double to_seconds(Nanos nanos) {
  return static_cast<double>(nanos) / static_cast<double>(kNanosPerSecond);
}

}  // namespace mprun
