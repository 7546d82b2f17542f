// Replays an event log (core/supervise/event_log.h): a fresh Scheduler is told the same events at the same times and
// has to answer with the same actions, byte for byte.
#pragma once

#include <cstdint>
#include <istream>

#include "base/result.h"

namespace mprun::simulation {

struct Replayed {
  std::uint64_t sessions = 0, events = 0, actions = 0;
  bool torn = false;  ///< the log ends in the midst of a step
};

/// Errors name the line and what was expected there. Lines that begin with # are comments.
[[nodiscard]] Result<Replayed> replay(std::istream& log);

}  // namespace mprun::simulation
