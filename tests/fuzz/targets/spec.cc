// A job spec from its text to the plan: schema, layers, the machine's resources. Slow: most of it checks the schema.
#include <sys/stat.h>

#include "fuzz_folder.h"
#include "job/resolve.h"
#include "targets.h"

namespace mprun::fuzz {
namespace {

/// A script, an input and a program, created on demand.
const FuzzFolder& folder() {
  static const FuzzFolder made;
  static const bool filled = [] {
    for (const char* file : {"job.py", "in.txt", "python3"}) made.put(file, "1\n");
    return chmod(made.file("python3").c_str(), 0700) == 0;
  }();
  require(filled, "a program can be made");
  return made;
}

}  // namespace

void spec(std::string_view input) {
  static const Document defaults = default_layer();
  auto document = parse_document("job.json", folder().path(), std::string(input));
  if (!document) return;
  Surroundings around;
  around.current_directory = folder().path();
  around.env = {{"PATH", folder().path()}};
  around.usable_cpus = 4;
  around.device_root = folder().path();
  around.memory_bytes = std::uint64_t{1} << 30U;
  const auto resolved = resolve({defaults, *document}, around);
  if (!resolved) {
    require(resolved.error().fault != Fault::kInternal, "a bad spec is no fault of mprun");
    require(resolved.error().message.size() < 20000, "messages are bounded");
    return;
  }
  const JobSpec& job = resolved->spec;
  require(job.processes >= 1 && job.processes <= 4096, "the number of processes is bounded");
  require(job.threads_per_worker >= 1, "a worker has a thread");
  require(!job.name.empty() && job.name.find('/') == std::string::npos, "a job's name suits a directory");
  require(!job.working_directory.empty() && job.working_directory.front() == '/', "paths are absolute");

  auto kept = parse_document("job.json", folder().path(), resolved->merged.dump());
  require(kept.has_value(), "the resolved spec can be written and read");
  const auto again = resolve({defaults, *kept}, around);
  require(again.has_value(), "the resolved spec is a good spec");
  require(again->merged == resolved->merged, "to resolve a resolved spec changes nothing");
}

}  // namespace mprun::fuzz
