// The processors that mprun may run on, grouped as the machine groups them. Read by hwloc, which takes the machine from
// a description or an XML file instead if HWLOC_SYNTHETIC or HWLOC_XMLFILE is set. Used by cli; owns nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "placement/cpu_list.h"

namespace mprun {

/// One core, with the processors of it that we may use: several where it runs several threads at once.
struct Core {
  int package = 0;  ///< index of its socket
  int node = 0;     ///< the kernel's number of the memory node nearest to it
  CpuList cpus;
};

struct Topology {
  std::vector<Core> cores;  ///< those of a package, and within it those of a memory node, one after the other
  CpuList excluded;         ///< processors of the machine that an affinity mask or a control group keeps us from
  bool is_real = true;      ///< this machine, not a described one

  [[nodiscard]] int packages() const;
  [[nodiscard]] int nodes() const;
  [[nodiscard]] CpuList cpus() const;
  /// The numbers of the memory nodes beside processors, ascending.
  [[nodiscard]] std::vector<int> nodes_beside(const CpuList& cpus) const;
  /// The same with one processor of each core, the first.
  [[nodiscard]] Topology without_hyperthreads() const;
};

/// kUsage where hwloc is not installed, kInternal where it cannot read the machine.
[[nodiscard]] Result<Topology> read_topology();

/// How many memory nodes the kernel knows, without hwloc, which takes milliseconds. `root`: where sys/ is. 1 if
/// unknown.
[[nodiscard]] int count_memory_nodes(const std::string& root = "");

}  // namespace mprun
