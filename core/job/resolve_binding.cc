#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "job/resolve_parts.h"
#include "json/words.h"
#include "placement/placement.h"

namespace mprun::job {
namespace {

constexpr std::array kBindings = {
    std::pair("auto", Binding::kAuto), std::pair("none", Binding::kNone),     std::pair("core", Binding::kCore),
    std::pair("numa", Binding::kNuma), std::pair("socket", Binding::kSocket),
};

Binding parse_binding(const std::string& name) {
  const auto* const found =
      std::find_if(kBindings.begin(), kBindings.end(), [&](const auto& row) { return row.first == name; });
  return found == kBindings.end() ? Binding::kAuto : found->second;  // the schema allows no other name
}

/// The lists of the spec, all of usable processors.
Result<std::vector<CpuList>> read_lists(const Resolving& job, const Json& lists, const CpuList& usable) {
  std::vector<CpuList> listed;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::string pointer = "/binding/" + std::to_string(i);
    const auto cpus = parse_cpu_list(lists[i].get<std::string>());
    if (!cpus)
      return job.layers.error(pointer, "found " + preview(lists[i]) + ", allowed: processors such as \"0-3,8\"");
    if (!std::includes(usable.begin(), usable.end(), cpus->begin(), cpus->end())) {
      return job.layers.error(pointer, "found " + preview(lists[i]) + ", but usable are " + to_string(usable));
    }
    listed.push_back(*cpus);
  }
  return listed;
}

/// How many workers the machine has room for, and what says so.
struct Room {
  int workers = std::numeric_limits<int>::max();
  std::string source;
};

void take_least(Room* room, std::uint64_t workers, const std::string& source) {
  if (workers >= static_cast<std::uint64_t>(room->workers)) return;
  *room = {static_cast<int>(workers), source};
}

/// needs: nullopt where the job names none. An error where not even one worker fits.
Result<std::optional<Room>> room_for_needs(Resolving& job) {
  const Json* const needs = job.layers.find("/needs");
  if (needs == nullptr || needs->empty()) return std::optional<Room>();
  PlacementQuery& query = job.placing.query;
  Room room;
  if (needs->contains("cpus")) {
    const int cpus = (*needs)["cpus"].get<int>();
    query.threads = cpus;
    take_least(&room, static_cast<std::uint64_t>(query.usable_cpus / cpus), job.placing.cpus_source + " / needs.cpus");
    if (room.workers == 0) {
      return job.layers.error("/needs/cpus", "found " + std::to_string(cpus) + ", but there are only " +
                                                 std::to_string(query.usable_cpus) + " (" + job.placing.cpus_source +
                                                 "): no task could ever run");
    }
  }
  if (needs->contains("memory")) {
    const auto bytes = size_bytes((*needs)["memory"]).value_or(0);
    if (bytes == 0) {
      return job.layers.error(
          "/needs/memory", "found " + preview((*needs)["memory"]) + ", allowed: a size, as bytes or such as \"2GiB\"");
    }
    take_least(&room, job.around.memory_bytes / bytes, "usable memory / needs.memory");
    if (job.around.memory_bytes < bytes) {
      return job.layers.error("/needs/memory", "found " + preview((*needs)["memory"]) + ", but there is only " +
                                                   size_text(job.around.memory_bytes) + " (" +
                                                   job.around.memory_source + "): no task could ever run");
    }
  }
  if (needs->contains("gpus")) {
    Device& device = job.spec.device;
    device.each = (*needs)["gpus"].get<int>();
    const auto usable = static_cast<int>(device.names.size());
    take_least(&room, static_cast<std::uint64_t>(usable / device.each), "usable devices / needs.gpus");
    if (usable < device.each) {
      return job.layers.error("/needs/gpus", "found " + std::to_string(device.each) + ", but there are only " +
                                                 std::to_string(usable) + " (" + job.text("/device") +
                                                 "): no task could ever run");
    }
  }
  return std::optional(room);
}

/// processes and threads_per_worker, as far as the topology does not decide.
Result<void> resolve_counts(Resolving& job) {
  Layers& layers = job.layers;
  PlacementQuery& query = job.placing.query;
  const auto number = [&](const char* pointer) {
    const Json* const value = layers.find(pointer);
    return value->is_number() ? std::optional(value->get<int>()) : std::nullopt;
  };
  const auto room = room_for_needs(job);
  if (!room) return room.error();
  const std::optional<int> asked = number("/processes");
  query.workers = asked.value_or(std::min(query.usable_cpus, 4096));
  if (*room && (*room)->workers < query.workers) {
    if (asked && job.spec.kind == JobKind::kRanks) {  // which all have to run at once
      return layers.error("/processes", "found " + std::to_string(*asked) + ", but there is room for " +
                                            std::to_string((*room)->workers) + " (" + (*room)->source + ")");
    }
    query.workers = (*room)->workers;
    job.placing.processes_source = (*room)->source;
  }
  const std::optional<int> threads = number("/threads_per_worker");
  if (threads) query.threads = threads;
  layers.put("/processes", query.workers);
  job.spec.processes = query.workers;
  job.spec.threads_explicit = threads.has_value();
  return {};
}

/// Topology and counts where a worker's threads shall have cores of their own.
Result<void> leave_hyperthreads(Resolving& job) {
  const Result<Topology> topology = job.around.read_topology();
  if (!topology) return job.layers.error("/hyperthreads", "found \"off\", but " + topology.error().message);
  Placing& placing = job.placing;
  placing.topology = topology->without_hyperthreads();
  const auto cores = static_cast<int>(topology->cores.size());
  if (cores > 0 && cores < placing.query.usable_cpus) {
    placing.query.usable_cpus = cores;
    placing.cpus_source = "usable cores";
  }
  return {};
}

Result<void> resolve_topology(Resolving& job) {
  if (!job.placing.topology.cores.empty()) return {};
  Result<Topology> topology = job.around.read_topology();
  if (!topology) return std::move(topology).error();
  job.placing.topology = std::move(*topology);
  return {};
}

/// What the topology says to "binding"; none is bound where it is not needed or, for auto, not known.
Result<void> query_binding(Resolving& job, const Json& value) {
  Placing& placing = job.placing;
  const Binding binding = value.is_string() ? parse_binding(value.get<std::string>()) : Binding::kNone;
  if (value.is_string() && binding == Binding::kNone) return {};
  if (binding == Binding::kAuto && job.around.one_memory_node) {
    job.spec.binding_reason = "there is one memory node";
    return {};
  }
  const Result<void> known = resolve_topology(job);
  if (!known && binding == Binding::kAuto) {
    job.spec.binding_reason = known.error().message;
    return {};
  }
  if (!known) return job.layers.error("/binding", "found " + preview(value) + ", but " + known.error().message);
  placing.query.binding = binding;
  if (!value.is_array()) return {};
  auto lists = read_lists(job, value, placing.topology.cpus());
  if (!lists) return std::move(lists).error();
  placing.query.lists = std::move(*lists);
  return {};
}

/// libgomp and libomp pin threads when they are loaded. A host that has loaded them before it forks has pinned all its
/// workers' threads to the same processors.
void warn_of_pinned_forks(Resolving& job) {
  const JobSpec& spec = job.spec;
  if (spec.start_method == StartMethod::kSpawn || !spec.script_is_python || spec.processes == 1) return;
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    const auto own = spec.env.find(name);
    const std::string* const value = own != spec.env.end() ? &own->second : job.variable(name);
    if (value == nullptr || value->empty() || *value == "false" || *value == "FALSE") continue;
    job.warnings.push_back(std::string(name) +
                           " is set: if OpenMP is loaded before workers are forked, their threads share the processors "
                           "that it pins; start_method \"spawn\" gives each worker its own");
    return;
  }
}

}  // namespace

Result<void> resolve_processors(Resolving& job) {
  Placing& placing = job.placing;
  placing.query.usable_cpus = std::max(1, job.around.usable_cpus);
  placing.query.binding = Binding::kNone;
  placing.cpus_source = job.around.cpus_source;
  if (job.text("/hyperthreads") == "off") {
    if (auto left = leave_hyperthreads(job); !left) return left;
  }
  placing.processes_source = placing.cpus_source;
  if (auto counted = resolve_counts(job); !counted) return counted;
  warn_of_pinned_forks(job);
  placing.membind = job.text("/membind") == "on";
  placing.interleave = job.text("/interleave") == "on";
  if (placing.interleave && !job.around.one_memory_node) {
    if (const auto known = resolve_topology(job); !known) {
      return job.layers.error("/interleave", "found \"on\", but " + known.error().message);
    }
  }
  const Json& value = *job.layers.find("/binding");
  if (auto asked = query_binding(job, value); !asked) return asked;
  if (auto placed = place(placing, &job.spec); !placed) {
    return job.layers.error("/binding", "found " + preview(value) + ", but " + placed.error().message +
                                            "\n  ask for fewer processes or threads_per_worker, or for \"numa\"");
  }
  if (!placing.topology.is_real && !job.spec.worker_cpus.empty()) {
    job.warnings.push_back("workers are bound to processors that HWLOC_SYNTHETIC or HWLOC_XMLFILE describes");
  }
  return {};
}

}  // namespace mprun::job

namespace mprun {

Result<void> place(const Placing& placing, JobSpec* spec) {
  auto placement = place_workers(placing.topology, placing.query);
  if (!placement) return std::move(placement).error();
  spec->worker_cpus = std::move(placement->workers);
  spec->threads_per_worker = placement->threads;
  if (!placement->reason.empty()) spec->binding_reason = std::move(placement->reason);
  spec->worker_nodes.clear();
  for (const CpuList& cpus : placing.membind ? spec->worker_cpus : std::vector<CpuList>()) {
    spec->worker_nodes.push_back(placing.topology.nodes_beside(cpus));
  }
  if (placing.interleave) spec->interleave_nodes = placing.topology.nodes_beside(placing.topology.cpus());
  if (spec->interleave_nodes.size() == 1) spec->interleave_nodes.clear();
  return {};
}

std::string describe_binding(const JobSpec& spec) {
  if (spec.worker_cpus.empty()) return "none";
  constexpr std::size_t kMostShown = 8;
  std::string text;
  for (std::size_t slot = 0; slot < spec.worker_cpus.size(); ++slot) {
    if (slot == kMostShown) return text + ", ...";
    text += (slot == 0 ? "" : ", ") + to_string(spec.worker_cpus[slot]);
  }
  return text;
}

}  // namespace mprun
