#include "placement/topology.h"

#include <dlfcn.h>
#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace mprun {
namespace {

/// The functions of hwloc that we call. They are loaded only when a job may be bound: linking hwloc would slow down
/// every start of mprun, and the portable build could not contain it.
struct Hwloc {
  decltype(&hwloc_topology_init) topology_init = nullptr;
  decltype(&hwloc_topology_load) topology_load = nullptr;
  decltype(&hwloc_topology_destroy) topology_destroy = nullptr;
  decltype(&hwloc_topology_is_thissystem) topology_is_thissystem = nullptr;
  decltype(&hwloc_topology_restrict) topology_restrict = nullptr;
  decltype(&hwloc_get_cpubind) get_cpubind = nullptr;
  decltype(&hwloc_get_type_depth) get_type_depth = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) get_nbobjs_by_depth = nullptr;
  decltype(&hwloc_get_obj_by_depth) get_obj_by_depth = nullptr;
  decltype(&hwloc_bitmap_alloc) bitmap_alloc = nullptr;
  decltype(&hwloc_bitmap_free) bitmap_free = nullptr;
  decltype(&hwloc_bitmap_first) bitmap_first = nullptr;
  decltype(&hwloc_bitmap_next) bitmap_next = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

/// nullopt: it is not installed. It stays loaded.
std::optional<Hwloc> load_hwloc() {
  void* const library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);  // of hwloc 2
  if (library == nullptr) return std::nullopt;
  Hwloc hwloc;
  const bool complete = find(library, "hwloc_topology_init", &hwloc.topology_init) &&
                        find(library, "hwloc_topology_load", &hwloc.topology_load) &&
                        find(library, "hwloc_topology_destroy", &hwloc.topology_destroy) &&
                        find(library, "hwloc_topology_is_thissystem", &hwloc.topology_is_thissystem) &&
                        find(library, "hwloc_topology_restrict", &hwloc.topology_restrict) &&
                        find(library, "hwloc_get_cpubind", &hwloc.get_cpubind) &&
                        find(library, "hwloc_get_type_depth", &hwloc.get_type_depth) &&
                        find(library, "hwloc_get_nbobjs_by_depth", &hwloc.get_nbobjs_by_depth) &&
                        find(library, "hwloc_get_obj_by_depth", &hwloc.get_obj_by_depth) &&
                        find(library, "hwloc_bitmap_alloc", &hwloc.bitmap_alloc) &&
                        find(library, "hwloc_bitmap_free", &hwloc.bitmap_free) &&
                        find(library, "hwloc_bitmap_first", &hwloc.bitmap_first) &&
                        find(library, "hwloc_bitmap_next", &hwloc.bitmap_next);
  return complete ? std::optional(hwloc) : std::nullopt;
}

/// A machine as hwloc sees it.
class Machine {
 public:
  explicit Machine(const Hwloc& hwloc) : hwloc_(hwloc) {
    if (hwloc_.topology_init(&topology_) != 0) topology_ = nullptr;
    loaded_ = topology_ != nullptr && hwloc_.topology_load(topology_) == 0;
  }
  ~Machine() {
    if (topology_ != nullptr) hwloc_.topology_destroy(topology_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] bool loaded() const { return loaded_; }
  [[nodiscard]] bool is_real() const { return hwloc_.topology_is_thissystem(topology_) != 0; }

  /// Leaves only what our affinity mask allows; control groups are respected by hwloc itself.
  void restrict_to_affinity() {
    hwloc_bitmap_s* const ours = hwloc_.bitmap_alloc();
    const bool known = ours != nullptr && hwloc_.get_cpubind(topology_, ours, HWLOC_CPUBIND_PROCESS) == 0;
    if (known) hwloc_.topology_restrict(topology_, ours, 0);
    hwloc_.bitmap_free(ours);
  }

  /// In hwloc's order. Where the machine does not describe its cores, each processor counts as one.
  [[nodiscard]] std::vector<Core> cores() const {
    int depth = hwloc_.get_type_depth(topology_, HWLOC_OBJ_CORE);
    if (depth < 0) depth = hwloc_.get_type_depth(topology_, HWLOC_OBJ_PU);
    std::vector<Core> cores;
    for (unsigned i = 0; i < hwloc_.get_nbobjs_by_depth(topology_, depth); ++i) {
      const hwloc_obj* const core = hwloc_.get_obj_by_depth(topology_, depth, i);
      // Of several memory nodes beside a core, as of processors with fast memory, the first is the usual one.
      const int node = std::max(hwloc_.bitmap_first(core->nodeset), 0);
      cores.push_back({package_of(core), node, list(core->cpuset)});
    }
    return cores;
  }

 private:
  [[nodiscard]] static int package_of(const hwloc_obj* object) {
    while (object != nullptr && object->type != HWLOC_OBJ_PACKAGE) object = object->parent;
    return object == nullptr ? 0 : static_cast<int>(object->logical_index);
  }

  [[nodiscard]] CpuList list(hwloc_const_bitmap_t bitmap) const {
    CpuList cpus;
    for (int cpu = hwloc_.bitmap_first(bitmap); cpu >= 0; cpu = hwloc_.bitmap_next(bitmap, cpu)) cpus.push_back(cpu);
    return cpus;
  }

  const Hwloc& hwloc_;
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

std::optional<CpuList> kernel_list(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return parse_cpu_list(text);
}

template <int Core::*Member>
int distinct(const std::vector<Core>& cores) {
  std::set<int> seen;
  for (const Core& core : cores) seen.insert(core.*Member);
  return static_cast<int>(seen.size());
}

}  // namespace

int Topology::packages() const { return distinct<&Core::package>(cores); }
int Topology::nodes() const { return distinct<&Core::node>(cores); }

CpuList Topology::cpus() const {
  CpuList all;
  for (const Core& core : cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> Topology::nodes_beside(const CpuList& cpus) const {
  std::set<int> beside;
  for (const Core& core : cores) {
    const bool has_one = std::any_of(core.cpus.begin(), core.cpus.end(),
                                     [&](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end(); });
    if (has_one) beside.insert(core.node);
  }
  return {beside.begin(), beside.end()};
}

Topology Topology::without_hyperthreads() const {
  Topology single = *this;
  for (Core& core : single.cores) core.cpus.resize(std::min<std::size_t>(core.cpus.size(), 1));
  return single;
}

Result<Topology> read_topology() {
  const auto hwloc = load_hwloc();
  if (!hwloc) return usage_error("hwloc, which finds cores and memory nodes, is not installed (libhwloc.so.15)");
  Machine machine(*hwloc);
  if (!machine.loaded()) return internal_error("hwloc cannot read the processors of this machine");
  Topology topology;
  topology.is_real = machine.is_real();
  if (topology.is_real) machine.restrict_to_affinity();
  topology.cores = machine.cores();
  std::stable_sort(topology.cores.begin(), topology.cores.end(), [](const Core& a, const Core& b) {
    return std::pair(a.package, a.node) < std::pair(b.package, b.node);
  });
  if (const auto online = kernel_list("/sys/devices/system/cpu/online"); topology.is_real && online) {
    const CpuList usable = topology.cpus();
    std::set_difference(online->begin(), online->end(), usable.begin(), usable.end(),
                        std::back_inserter(topology.excluded));
  }
  return topology;
}

int count_memory_nodes(const std::string& root) {
  const auto nodes = kernel_list(root + "/sys/devices/system/node/has_cpu");
  return nodes ? static_cast<int>(nodes->size()) : 1;
}

}  // namespace mprun
