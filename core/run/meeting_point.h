// Where the ranks of all shards meet (MASTER_ADDR, MASTER_PORT), chosen so that every node finds the same place without
// communication. Called once by run_job before anything is launched.
#pragma once

#include "base/result.h"
#include "cluster/allocation.h"

namespace mprun {

/// Puts an address into allocation->first_host and a port into master_port: those of MASTER_ADDR and MASTER_PORT if
/// they are set; else the first host of the allocation, by its name or, if that does not resolve, by the address that
/// Slurm has for it. kUsage errors: none of these is known.
[[nodiscard]] Result<void> agree_on_meeting_point(Allocation* allocation);

}  // namespace mprun
