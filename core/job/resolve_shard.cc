#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun::job {
namespace {

/// The directory of the whole run, which all shards find without communication.
Result<std::string> directory_of_all(const Resolving& job, bool* goes_on) {
  const Allocation& place = job.around.allocation;
  *goes_on = true;
  if (!job.spec.output_dir.empty()) return job.spec.output_dir;
  if (place.run_name.empty()) {
    return job.layers.error("/shard", "all shards write below one run directory, which has to be named: --output DIR");
  }
  *goes_on = place.same_after_requeue;
  return absolute_path(job.around.current_directory, "runs/" + job.spec.name + "/" + place.run_name);
}

/// Refuses jobs that shards cannot share while they run.
Result<void> resolve_balance(Resolving& job) {
  JobSpec& spec = job.spec;
  spec.balance = job.text("/balance") == "dynamic" ? Balance::kDynamic : Balance::kStatic;
  if (spec.balance == Balance::kStatic) return {};
  constexpr const char* kCure = ": use \"static\"";
  for (const auto& [is_set, field] :
       {std::pair(spec.stop_on_error, "on_error"), std::pair(spec.max_failures.has_value(), "max_failures")}) {
    if (!is_set) continue;
    return job.layers.error("/balance", "what a shard that stops at failures (\"" + std::string(field) +
                                            "\") leaves, others would run, and fail" + kCure);
  }
  return {};
}

}  // namespace

Result<void> resolve_shard(Resolving& job) {
  Layers& layers = job.layers;
  JobSpec& spec = job.spec;
  const Allocation& place = job.around.allocation;
  spec.allocation = place;
  if (auto done = resolve_balance(job); !done) return done;
  const std::string asked = job.text("/shard");
  if (!asked.empty()) {
    spec.shard = parse_shard(asked);
    spec.allocation.shard_source.clear();
    if (!spec.shard) {
      return layers.error("/shard", "found " + in_quotes(asked) +
                                        ", allowed: I/N, the I-th of N shards, with I from 1 to N and N at most " +
                                        std::to_string(kMostShards) + ", such as \"2/4\"");
    }
  } else {
    if (!place.shard_fault.empty()) {
      return usage_error(place.shard_fault + ", so mprun does not know its shard; give it: --shard I/N");
    }
    if (!place.shard) return {};
    spec.shard = place.shard;
    layers.put("/shard", to_string(*place.shard));
  }
  const bool ranks = spec.kind == JobKind::kRanks;
  if (spec.results.size() > 1) {
    return layers.error("/output/results",
                        "several shards cannot write one file; `mprun merge DIR` joins their results");
  }
  if (ranks && spec.shard->count > 1 && !layers.sets_number("/processes") && place.uneven_cpus) {
    return layers.error("/processes",
                        "the nodes have different numbers of CPUs, and ranks have to be as many on each: "
                        "use --processes N");
  }
  const auto directory = directory_of_all(job, &spec.goes_on);
  if (!directory) return directory.error();
  layers.put("/output/dir", *directory);
  spec.output_dir = *directory + "/shards/" + folder_of(*spec.shard);
  return {};
}

}  // namespace mprun::job
