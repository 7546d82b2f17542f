// A schedule: one job from start to end over as many lives of mprun as it takes, all from one list of
// choices. A schedule that fails is replayed and shrunk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choices.h"
#include "stats.h"

namespace mprun::simulation {

/// Runs the schedule of these choices. Returns what did not hold, if anything. `log`: receives every step as an event
/// log with comments; may be nullptr.
[[nodiscard]] std::optional<std::string> run_schedule(Choices* choices, Stats* stats, std::string* log);

/// Makes the list of choices shorter and smaller as long as the same rule stays broken.
[[nodiscard]] std::vector<std::uint32_t> shrink(std::vector<std::uint32_t> list, const std::string& failure);

}  // namespace mprun::simulation
