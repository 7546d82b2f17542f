// Which processors each worker of a job runs on. Pure: from a Topology, a binding and the size of the job. Used by job
// (resolve_binding.cc) and doctor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "placement/cpu_list.h"
#include "placement/topology.h"

namespace mprun {

/// What a worker is bound to.
enum class Binding : std::uint8_t {
  kAuto,  ///< kCore or kNuma where the machine has several memory nodes and cores for all threads, else kNone
  kNone,
  kCore,    ///< whole cores of its own, of one memory node
  kNuma,    ///< all cores of a memory node
  kSocket,  ///< all cores of a package
};

struct Placement {
  std::vector<CpuList> workers;  ///< of each slot, in its order; empty: none is bound
  std::string reason;            ///< why they are bound so, or are not
};

/// Workers are spread over packages and memory nodes by the number of their cores; those of one node have neighbouring
/// slots, so that ranks that talk to each other are close. kUsage: kCore finds too few cores; the message says how many
/// there are.
[[nodiscard]] Result<Placement> place_workers(const Topology& topology, Binding binding, int workers, int threads);

}  // namespace mprun
