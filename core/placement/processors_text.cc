#include "placement/processors_text.h"

#include <algorithm>
#include <cstddef>

namespace mprun {
namespace {

std::string counted(std::size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

/// "workers 0-3", of those that may run on one of these processors; empty for none.
std::string workers_on(const CpuList& cpus, const Placement& placement) {
  CpuList workers;
  for (std::size_t slot = 0; slot < placement.workers.size(); ++slot) {
    const CpuList& bound = placement.workers[slot];
    const bool is_here = std::any_of(bound.begin(), bound.end(),
                                     [&](int cpu) { return std::binary_search(cpus.begin(), cpus.end(), cpu); });
    if (is_here) workers.push_back(static_cast<int>(slot));
  }
  if (workers.empty()) return "";
  return (workers.size() == 1 ? ", worker " : ", workers ") + to_string(workers);
}

}  // namespace

std::string processors_text(const Topology& topology, const Placement& placement, int workers) {
  std::string text;
  const auto& cores = topology.cores;
  for (std::size_t begin = 0, end = 0; begin < cores.size(); begin = end) {
    CpuList cpus;
    for (; end < cores.size() && cores[end].package == cores[begin].package && cores[end].node == cores[begin].node;
         ++end) {
      cpus.insert(cpus.end(), cores[end].cpus.begin(), cores[end].cpus.end());
    }
    std::sort(cpus.begin(), cpus.end());
    text += "package " + std::to_string(cores[begin].package) + ", memory node " + std::to_string(cores[begin].node) +
            ": " + counted(end - begin, "core") + ", CPUs " + to_string(cpus) + workers_on(cpus, placement) + "\n";
  }
  if (!topology.excluded.empty()) {
    text += "not usable, by the affinity mask or a control group: CPUs " + to_string(topology.excluded) + "\n";
  }
  text += "by default " + counted(static_cast<std::size_t>(workers), "worker") + " of " +
          counted(static_cast<std::size_t>(placement.threads), "thread") +
          (placement.workers.empty() ? ", not bound: " : ", bound: ") + placement.reason + "\n";
  return text;
}

}  // namespace mprun
