// Which processors each worker of a job runs on. Pure: from a Topology, a binding and the size of the job. Used by job
// (resolve_binding.cc) and doctor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "placement/cpu_list.h"
#include "placement/topology.h"

namespace mprun {

/// What a worker is bound to.
enum class Binding : std::uint8_t {
  kAuto,  ///< kCore or kNuma where the machine has several memory nodes and a processor for each thread, else kNone
  kNone,
  kCore,    ///< whole cores of its own, of one memory node
  kNuma,    ///< all cores of a memory node
  kSocket,  ///< all cores of a package
};

/// What a job asks of the processors.
struct PlacementQuery {
  Binding binding = Binding::kAuto;
  std::vector<CpuList> lists;  ///< instead of a binding: those of each worker in turn; empty: there are none
  int workers = 1;
  std::optional<int> threads;  ///< of each worker; nullopt: as many as have a processor each
  int usable_cpus = 1;         ///< fewer than the topology has where a quota or a batch system says so
};

struct Placement {
  std::vector<CpuList> workers;  ///< of each slot, in its order; empty: none is bound
  std::string reason;            ///< why they are bound so, or are not
  int threads = 1;               ///< of each worker: the same for all, as results of parallel sums depend on it
};

/// Workers are spread over packages and memory nodes by the number of their cores; those of one node have neighbouring
/// slots, so that ranks that talk to each other are close. kUsage: kCore finds too few cores; the message says how many
/// there are.
[[nodiscard]] Result<Placement> place_workers(const Topology& topology, const PlacementQuery& query);

}  // namespace mprun
