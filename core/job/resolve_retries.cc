#include <array>

#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun {
namespace job {
namespace {

constexpr std::array kCounts = {"/retries/on_error", "/retries/on_death", "/retries/on_hang"};

/// Sets to 0 what no document sets, and finds the place that asks for restarts.
void resolve_counts_of_ranks(Resolving& job) {
  Layers& layers = job.layers;
  std::string& place = job.spec.retries.ranks_place;
  for (const char* pointer : kCounts) {
    if (!layers.is_set(pointer)) layers.put(pointer, 0);
    const Document* document = layers.strict_owner(pointer, 0);
    if (document == nullptr || layers.find(pointer)->get<int>() == 0 || !place.empty()) continue;
    const std::string at = document->value.at("retries").is_number() ? "/retries" : pointer;
    place = place_of(*document, at) + ": " + at;
  }
}

}  // namespace

Result<double> read_seconds(const Layers& layers, const std::string& pointer, bool zero_allowed) {
  constexpr double kMost = 1e9;
  const Json& value = *layers.find(pointer);
  const double seconds = duration_seconds(value).value_or(-1);
  if (seconds > kMost || seconds < 0 || (seconds == 0 && !zero_allowed)) {
    return layers.error(pointer, "found " + preview(value) + ", allowed: a time " +
                                     (zero_allowed ? "from 0" : "above 0") + " to 1000000000 seconds");
  }
  return seconds;
}

Result<void> resolve_retries(Resolving& job) {
  if (job.spec.kind == JobKind::kRanks) resolve_counts_of_ranks(job);
  const Layers& layers = job.layers;
  RetryPolicy& retries = job.spec.retries;
  retries.on_error = layers.find(kCounts[0])->get<int>();
  retries.on_death = layers.find(kCounts[1])->get<int>();
  retries.on_hang = layers.find(kCounts[2])->get<int>();
  Result<double> delay = read_seconds(layers, "/retries/delay", true);
  if (!delay) return std::move(delay).error();
  retries.delay = *delay;
  retries.backoff = layers.find("/retries/backoff")->get<double>();
  if (layers.find("/retries/max_delay") == nullptr) return {};
  Result<double> most = read_seconds(layers, "/retries/max_delay", true);
  if (!most) return std::move(most).error();
  if (*most < *delay) {
    return layers.error("/retries/max_delay", "found " + preview(*layers.find("/retries/max_delay")) +
                                                  ", which is less than \"delay\", " +
                                                  preview(*layers.find("/retries/delay")));
  }
  retries.max_delay = *most;
  return {};
}

Result<void> resolve_restarts(Resolving& job) {
  const std::uint64_t shards = job.spec.shard.value_or(Shard{}).count;
  if (auto fits = check_restarts(job.spec, shards); !fits) return fits;
  if (job.spec.kind != JobKind::kRanks || shards == 1) return {};
  RetryPolicy& retries = job.spec.retries;  // of the configuration, which serves all jobs
  retries.on_error = retries.on_death = retries.on_hang = 0;
  for (const char* pointer : kCounts) job.layers.put(pointer, 0);
  return {};
}

}  // namespace job

Result<void> check_restarts(const JobSpec& spec, std::uint64_t shards) {
  if (spec.retries.ranks_place.empty() || shards == 1) return {};
  return usage_error(
      spec.retries.ranks_place +
      ": ranks on several nodes cannot start again by themselves: each mprun has only its own\n"
      "  remove it; to start all again after a failure, have the job requeued (#SBATCH --requeue), or run "
      "it once more with --resume");
}

}  // namespace mprun
