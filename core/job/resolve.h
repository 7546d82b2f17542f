// From layers of JSON to one JobSpec: built-in defaults < user config < spec file < command line.
// Called once by cli/ before anything is launched. Every error is Fault::kUsage and names layer
// (file and line), JSON pointer, what was found, what is allowed and the nearest known name.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/document.h"
#include "job/json.h"
#include "job/spec.h"

namespace mprun {

/// What the machine offers; injected so that tests need no such machine.
struct Surroundings {
  std::string current_directory;            ///< absolute
  std::map<std::string, std::string> env;   ///< mprun's own environment
  int usable_cpus = 1;                      ///< see procfs/cpu_room.h; fewer where a batch system gave fewer
  std::string cpus_source = "usable CPUs";  ///< what says so
  std::string device_root = "/dev";         ///< where nvidia0, davinci0 are looked for
  bool stdin_is_terminal = false;
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();  ///< that can still be used
  std::string memory_source;                                               ///< what says so, for messages
  Allocation allocation;                                                   ///< recognise() of `env`
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
  Json merged;                        ///< the merged JSON, as `job.json` of the run directory keeps it: without secrets
  std::vector<Decision> decisions;    ///< in schema order
  std::vector<std::string> warnings;  ///< what of it has no effect
};

/// Validates every layer by the schema, merges them (lowest first) and checks what one schema
/// cannot say: script or command, files that exist, devices that are there.
[[nodiscard]] Result<Resolved> resolve(const std::vector<Document>& layers, const Surroundings& around);

/// All of the spec that concerns a program behind --.
struct ProgramSpec {
  int copies = 1;
  std::vector<std::string> adapters_off;
  WatchPolicy watch;
};

/// From the command line's layer, checked by the schema; it has fields that have an effect on a program only.
[[nodiscard]] Result<ProgramSpec> resolve_program(const Document& layer, const std::string& current_directory);

/// The lowest layer: the `default` keywords of the schema.
[[nodiscard]] Document default_layer();

}  // namespace mprun
