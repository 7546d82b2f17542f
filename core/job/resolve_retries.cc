#include <utility>

#include "job/resolve_parts.h"
#include "json/words.h"

namespace mprun::job {

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
  Layers& layers = job.layers;
  RetryPolicy& retries = job.spec.retries;
  for (const auto& [pointer, count] :
       {std::pair("/retries/on_error", &retries.on_error), std::pair("/retries/on_death", &retries.on_death),
        std::pair("/retries/on_hang", &retries.on_hang)}) {
    if (job.spec.kind == JobKind::kRanks && !layers.is_set(pointer)) layers.put(pointer, 0);
    *count = layers.find(pointer)->get<int>();
  }
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

}  // namespace mprun::job
