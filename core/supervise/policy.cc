#include "supervise/supervisor.h"

namespace mprun {

Policy policy_of(const JobSpec& spec, std::optional<std::uint64_t> total) {
  const auto nanos = [](std::optional<double> seconds) -> std::optional<Nanos> {
    return seconds ? std::optional(from_seconds(*seconds)) : std::nullopt;
  };
  Policy policy;
  policy.workers = spec.processes;
  policy.process_per_task = spec.kind != JobKind::kFunction;
  policy.ranks = spec.kind == JobKind::kRanks;
  policy.chunk_size = spec.chunk_size;
  policy.retries_on_error = spec.retries.on_error;
  policy.retries_on_death = spec.retries.on_death;
  policy.retries_on_hang = spec.retries.on_hang;
  policy.retry_delay = from_seconds(spec.retries.delay);
  policy.retry_backoff = spec.retries.backoff;
  policy.retry_max_delay = nanos(spec.retries.max_delay);
  policy.stop_on_error = spec.stop_on_error;
  policy.max_failures = spec.max_failures;
  policy.task_limit = nanos(spec.limits.task_seconds);
  policy.job_limit = nanos(spec.limits.job_seconds);
  policy.join_limit = from_seconds(spec.limits.join_seconds);
  policy.grace = from_seconds(spec.limits.grace_seconds);
  policy.tasks_per_worker = spec.limits.tasks_per_worker;
  policy.total = total;
  policy.has_leader = policy.most_restarts() > 0 && spec.shard.value_or(Shard{}).count > 1;
  return policy;
}

}  // namespace mprun
