// A schedule: one job from its beginning to its end over as many lives of mprun as it takes, all from one list of
// choices. And what is done with one that fails: it is replayed and shrunk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choices.h"
#include "stats.h"

namespace mprun::simulation {

/// Runs the schedule of these choices. Returns what did not hold, if anything. `log`: every step as an event log with
/// comments; nullptr: not wanted.
[[nodiscard]] std::optional<std::string> run_schedule(Choices* choices, Stats* stats, std::string* log);

/// The list of choices made shorter and smaller as long as the same thing does not hold.
[[nodiscard]] std::vector<std::uint32_t> shrink(std::vector<std::uint32_t> list, const std::string& failure);

}  // namespace mprun::simulation
