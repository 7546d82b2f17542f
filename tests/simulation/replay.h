// Replays an event log (core/supervise/event_log.h): a fresh Scheduler receives the same events at the same times and
// must answer with the same actions, byte for byte.
#pragma once

#include <cstdint>
#include <istream>

#include "base/result.h"

namespace mprun::simulation {

struct Replayed {
  std::uint64_t sessions = 0, events = 0, actions = 0;
  bool torn = false;  ///< the log ends in the middle of a step
};

/// Errors name the line and what was expected there. Lines that begin with # are comments.
[[nodiscard]] Result<Replayed> replay(std::istream& log);

}  // namespace mprun::simulation
