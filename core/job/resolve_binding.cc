#include <algorithm>
#include <array>
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

/// The lists of the spec, each worker's in turn; all of usable processors.
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
  std::vector<CpuList> workers;
  workers.reserve(static_cast<std::size_t>(job.spec.processes));
  for (int slot = 0; slot < job.spec.processes; ++slot) {
    workers.push_back(listed[static_cast<std::size_t>(slot) % listed.size()]);
  }
  return workers;
}

}  // namespace

Result<void> resolve_binding(Resolving& job) {
  const Json* const value = job.layers.find("/binding");
  const Binding binding = value->is_string() ? parse_binding(value->get<std::string>()) : Binding::kNone;
  if (value->is_string() && binding == Binding::kNone) return {};
  JobSpec& spec = job.spec;
  if (binding == Binding::kAuto && job.around.one_memory_node) {
    spec.binding_reason = "there is one memory node";
    return {};
  }
  const Result<Topology> topology = job.around.read_topology();
  if (!topology && binding == Binding::kAuto) {
    spec.binding_reason = topology.error().message;
    return {};
  }
  if (!topology) return job.layers.error("/binding", "found " + preview(*value) + ", but " + topology.error().message);
  if (value->is_array()) {
    auto workers = read_lists(job, *value, topology->cpus());
    if (!workers) return std::move(workers).error();
    spec.worker_cpus = std::move(*workers);
  } else {
    auto placement = place_workers(*topology, binding, spec.processes, spec.threads_per_worker);
    if (!placement) {
      return job.layers.error("/binding", "found " + preview(*value) + ", but " + placement.error().message +
                                              "\n  ask for fewer processes or threads_per_worker, or for \"numa\"");
    }
    spec.worker_cpus = std::move(placement->workers);
    spec.binding_reason = std::move(placement->reason);
  }
  if (!topology->is_real && !spec.worker_cpus.empty()) {
    job.warnings.push_back("workers are bound to processors that HWLOC_SYNTHETIC or HWLOC_XMLFILE describes");
  }
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

}  // namespace mprun::job
