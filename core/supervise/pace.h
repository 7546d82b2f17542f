// Pace: how often the supervisor does what costs time even if nothing happens. Pure; used by supervisor.cc, and by
// tests/simulation, which counts the total of a thousand nodes.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace mprun {

inline constexpr Nanos kTickEvery = 50 * kNanosPerMilli;
inline constexpr Nanos kPulseEvery = 100 * kNanosPerMilli;
// When tasks are shorter than this, results are collected in batches instead of one by one.
inline constexpr double kShortTask = 50e-6;

/// Longer tasks: their results are written out at once, but not more often than this. A thousand mpruns that wrote two
/// hundred times a second would be too much for the file system that they share.
[[nodiscard]] constexpr Nanos fresh_results_every(std::uint64_t shards) {
  constexpr Nanos kAlone = 5 * kNanosPerMilli;
  return shards < static_cast<std::uint64_t>(kPulseEvery / kAlone) ? kAlone * static_cast<Nanos>(shards) : kPulseEvery;
}

/// How often results are written out. `answers`: a program sends inputs by a pipe and reads results by another; it gets
/// each at once, as it may wait for one before it sends the next input. `task_seconds`: what a task takes on average.
/// `arrived`: the results that the last wait has brought; few of them, such as the first ones, are worth a write.
[[nodiscard]] constexpr Nanos write_results_every(std::uint64_t shards, bool answers, double task_seconds,
                                                  std::uint64_t arrived) {
  constexpr std::uint64_t kMany = 16;
  if (answers) return 0;
  return task_seconds < kShortTask && arrived >= kMany ? kPulseEvery : fresh_results_every(shards);
}

}  // namespace mprun
