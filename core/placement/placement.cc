#include "placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

namespace mprun {
namespace {

/// Cores that belong together: of one memory node, or of one package.
struct Group {
  std::vector<Core> cores;
  int workers = 0;
};

std::vector<Group> group_cores(const std::vector<Core>& cores, int Core::*member) {
  std::vector<Group> groups;
  for (const Core& core : cores) {
    if (groups.empty() || groups.back().cores.back().*member != core.*member) groups.emplace_back();
    groups.back().cores.push_back(core);
  }
  return groups;
}

/// Cores that a worker with so many threads needs, as each core runs as many as it has processors.
int cores_for(const Topology& topology, int threads) {
  std::size_t at_once = topology.cores.front().cpus.size();
  for (const Core& core : topology.cores) at_once = std::min(at_once, core.cpus.size());
  const auto each = static_cast<int>(std::max<std::size_t>(at_once, 1));
  return (threads + each - 1) / each;
}

/// Each worker to the group that is least full. False: some have no room. `least`: cores that each worker needs for
/// itself; 0: none.
bool spread(std::vector<Group>* groups, int workers, int least) {
  for (int worker = 0; worker < workers; ++worker) {
    Group* emptiest = nullptr;
    for (Group& group : *groups) {
      const auto size = static_cast<int>(group.cores.size());
      if ((group.workers + 1) * least > size) continue;
      const auto is_emptier = [&](const Group& other) {
        return group.workers * static_cast<int>(other.cores.size()) < other.workers * size;
      };
      if (emptiest == nullptr || is_emptier(*emptiest)) emptiest = &group;
    }
    if (emptiest == nullptr) return false;
    ++emptiest->workers;
  }
  return true;
}

CpuList cpus_of(const std::vector<Core>& cores, std::size_t begin, std::size_t end) {
  CpuList cpus;
  for (std::size_t i = begin; i < end; ++i) cpus.insert(cpus.end(), cores[i].cpus.begin(), cores[i].cpus.end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<CpuList> whole_groups(const std::vector<Group>& groups) {
  std::vector<CpuList> workers;
  for (const Group& group : groups) {
    workers.insert(workers.end(), static_cast<std::size_t>(group.workers), cpus_of(group.cores, 0, group.cores.size()));
  }
  return workers;
}

/// The cores of each group in equal parts, the first ones larger by one where they do not divide.
std::vector<CpuList> parts_of_groups(const std::vector<Group>& groups) {
  std::vector<CpuList> workers;
  for (const Group& group : groups) {
    const auto parts = static_cast<std::size_t>(group.workers);
    for (std::size_t part = 0, begin = 0; part < parts; ++part) {
      const std::size_t size = group.cores.size() / parts + (part < group.cores.size() % parts ? 1 : 0);
      workers.push_back(cpus_of(group.cores, begin, begin + size));
      begin += size;
    }
  }
  return workers;
}

std::string counted(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

Placement bind_to_groups(const Topology& topology, int workers, int Core::*member, std::string reason) {
  std::vector<Group> groups = group_cores(topology.cores, member);
  (void)spread(&groups, workers, 0);
  return {whole_groups(groups), std::move(reason)};
}

Placement bind_to_lists(const PlacementQuery& query) {
  Placement placement;
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(query.workers); ++slot) {
    placement.workers.push_back(query.lists[slot % query.lists.size()]);
  }
  return placement;
}

/// Without workers: there are too few cores, and the reason says so. A worker that may have any number of threads needs
/// one core.
Placement bind_to_cores(const Topology& topology, const PlacementQuery& query) {
  const int workers = query.workers;
  const int threads = query.threads.value_or(1);
  const int least = cores_for(topology, threads);
  std::vector<Group> groups = group_cores(topology.cores, &Core::node);
  if (spread(&groups, workers, least)) return {parts_of_groups(groups), "each worker has cores of its own"};
  return {{},
          counted(workers, "worker") + " of " + counted(threads, "thread") + " need " +
              counted(workers * least, "core") + ", each worker those of one memory node; usable are " +
              counted(static_cast<int>(topology.cores.size()), "core") + " of " +
              counted(topology.nodes(), "memory node")};
}

/// The most threads that each worker may have so that each thread has a processor, where workers share some evenly.
int threads_beside(const std::vector<CpuList>& workers) {
  std::map<int, int> users;
  for (const CpuList& cpus : workers) {
    for (const int cpu : cpus) ++users[cpu];
  }
  double least = std::numeric_limits<double>::max();
  for (const CpuList& cpus : workers) {
    double share = 0;
    for (const int cpu : cpus) share += 1.0 / users[cpu];
    least = std::min(least, share);
  }
  constexpr double kRounding = 1e-6;  // a third three times is one
  return static_cast<int>(least + kRounding);
}

Placement choose(const Topology& topology, const PlacementQuery& query) {
  if (topology.nodes() == 1) return {{}, "one memory node: the kernel places threads equally well"};
  if (!topology.excluded.empty()) {
    Placement cores = bind_to_cores(topology, query);
    if (!cores.workers.empty()) return cores;
  }
  const int threads = query.threads.value_or(1);
  Placement nodes =
      bind_to_groups(topology, query.workers, &Core::node,
                     topology.excluded.empty() ? "memory nodes, not cores: mprun has no part of the machine to itself"
                                               : "memory nodes: there are fewer cores than workers need");
  if (threads_beside(nodes.workers) >= threads) return nodes;
  return {{},
          counted(query.workers, "worker") + " of " + counted(threads, "thread") + " need " +
              counted(query.workers * threads, "CPU") + ", each worker those of one memory node; usable are " +
              counted(static_cast<int>(topology.cpus().size()), "CPU") + " of " +
              counted(topology.nodes(), "memory node")};
}

Result<Placement> bind(const Topology& topology, const PlacementQuery& query) {
  if (!query.lists.empty()) return bind_to_lists(query);
  if (query.binding == Binding::kNone) return Placement{};
  if (topology.cores.empty()) return Placement{{}, "hwloc finds no processors"};
  switch (query.binding) {
    case Binding::kAuto:
      return choose(topology, query);
    case Binding::kNuma:
      return bind_to_groups(topology, query.workers, &Core::node, "");
    case Binding::kSocket:
      return bind_to_groups(topology, query.workers, &Core::package, "");
    case Binding::kCore:
    case Binding::kNone:
      break;
  }
  Placement cores = bind_to_cores(topology, query);
  if (cores.workers.empty()) return usage_error(std::move(cores.reason));
  return cores;
}

}  // namespace

Result<Placement> place_workers(const Topology& topology, const PlacementQuery& query) {
  Result<Placement> placement = bind(topology, query);
  if (!placement) return placement;
  int threads = query.usable_cpus / query.workers;
  if (!placement->workers.empty()) threads = std::min(threads, threads_beside(placement->workers));
  placement->threads = query.threads.value_or(std::max(threads, 1));
  return placement;
}

}  // namespace mprun
