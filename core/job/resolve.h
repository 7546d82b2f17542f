// From layers of JSON to one JobSpec: built-in defaults < user config < spec file < command line. Called once by cli/
// before anything is launched. Every error is Fault::kUsage and names layer (file and line), JSON pointer, what was
// found, what is allowed and the nearest known name.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "json/document.h"
#include "json/json.h"
#include "placement/placement.h"
#include "placement/topology.h"

namespace mprun {

/// What the machine offers; passed in, so that tests need no such machine.
struct Surroundings {
  std::string current_directory;            ///< absolute
  std::map<std::string, std::string> env;   ///< mprun's own environment
  int usable_cpus = 1;                      ///< see procfs/cpu_room.h; fewer if a batch system assigned fewer
  std::string cpus_source = "usable CPUs";  ///< where the number comes from
  bool one_memory_node = true;              ///< known without read_topology, which takes milliseconds
  std::function<Result<Topology>()> read_topology = [] { return Topology(); };
  /// The paths of shared libraries by their names; see os/library_search.h.
  std::function<std::map<std::string, std::string>(const std::vector<std::string>&)> find_libraries =
      [](const std::vector<std::string>&) { return std::map<std::string, std::string>(); };
  std::string device_root = "/dev";  ///< where to look for nvidia0, davinci0
  bool stdin_is_terminal = false;
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();  ///< that can still be used
  std::string memory_source;                                               ///< where that comes from, for messages
  std::uint64_t huge_page_bytes = 0;  ///< of the kernel's reserved pool (hugetlbfs); 0: it has none
  std::uint64_t free_huge_pages = 0;  ///< of that pool
  Allocation allocation;              ///< recognise() of `env`
};

/// What decides where workers run, kept for jobs that turn out to have fewer tasks than workers.
struct Placing {
  Topology topology;  ///< empty where nothing depends on it
  PlacementQuery query;
  std::string cpus_source;       ///< of query.usable_cpus
  std::string processes_source;  ///< of query.workers, where the machine decides
  bool membind = false;
  bool interleave = false;
};

/// One line of `--explain`: a decision and where it came from.
struct Decision {
  std::string field;   ///< "processes"
  std::string value;   ///< "4"
  std::string reason;  ///< "the command line", "job.json:3", "the default: usable CPUs"
};

// Its implicit move moves nlohmann values, which clang-tidy cannot see through.
struct Resolved {  // NOLINT(bugprone-exception-escape)
  JobSpec spec;
  Placing placing;
  Json merged;                        ///< the merged JSON that `job.json` of the run directory keeps: without secrets
  std::vector<Decision> decisions;    ///< in schema order
  std::vector<std::string> warnings;  ///< parts without an effect
};

/// Validates every layer against the schema, merges them (lowest first) and checks what a schema cannot express: script
/// or command, files that exist, devices that exist.
[[nodiscard]] Result<Resolved> resolve(const std::vector<Document>& layers, const Surroundings& around);

/// Sets what depends on the number of workers: where each runs, the memory nodes, and threads_per_worker.
[[nodiscard]] Result<void> place(const Placing& placing, JobSpec* spec);

/// What workers are bound to, for --explain: "0-3, 4-7".
[[nodiscard]] std::string describe_binding(const JobSpec& spec);

/// The part of the spec that applies to a program after --.
struct ProgramSpec {
  int copies = 1;
  std::vector<std::string> adapters_off;
  WatchPolicy watch;
};

/// From the command line's layer, checked against the schema; it has only fields that have an effect on a program.
[[nodiscard]] Result<ProgramSpec> resolve_program(const Document& layer, const std::string& current_directory);

/// The lowest layer: the `default` keywords of the schema.
[[nodiscard]] Document default_layer();

}  // namespace mprun
