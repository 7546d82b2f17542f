// Where the ranks of all shards meet (MASTER_ADDR, MASTER_PORT), so that every node finds the same without a word
// between them. Called once by run_job before anything is launched.
#pragma once

#include "base/result.h"
#include "cluster/allocation.h"

namespace mprun {

/// Puts an address into allocation->first_host and a port into master_port: those of MASTER_ADDR and MASTER_PORT where
/// they are set; else the first host of the allocation, by its name or, where that resolves to nothing, by the address
/// that Slurm has for it. kUsage errors: nobody says.
[[nodiscard]] Result<void> agree_on_meeting_point(Allocation* allocation);

}  // namespace mprun
