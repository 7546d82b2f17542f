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
/// hundred times a second would be too much for the file system that they share. A program that sends inputs by a pipe
/// and reads results by another gets each result at once: it may wait for one before it sends the next input.
[[nodiscard]] constexpr Nanos fresh_results_every(std::uint64_t shards) {
  constexpr Nanos kAlone = 5 * kNanosPerMilli;
  return shards < static_cast<std::uint64_t>(kPulseEvery / kAlone) ? kAlone * static_cast<Nanos>(shards) : kPulseEvery;
}

}  // namespace mprun
