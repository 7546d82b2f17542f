// Processors, and who runs on them, as text for a person. Pure. Used by doctor.
#pragma once

#include <string>

#include "placement/placement.h"
#include "placement/topology.h"

namespace mprun {

/// A line for each memory node, with its package, cores, processors and the workers that are bound there; the
/// processors that mprun may not use; and why the `workers` are bound so, or are not. Lines end with newlines.
[[nodiscard]] std::string processors_text(const Topology& topology, const Placement& placement, int workers);

}  // namespace mprun
