#include <algorithm>
#include <map>
#include <numeric>

#include "report/run_report.h"

namespace mprun {
namespace {

constexpr std::size_t kMostSlowest = 10;

}  // namespace

RunFigures figures_of(const RunRecord& run) {
  RunFigures figures;
  std::map<int, WorkerUse> workers;
  for (const RunRecord::Attempt& attempt : run.attempts) {
    const bool retried = attempt.end == RunRecord::End::kRetried;
    figures.ok += attempt.end == RunRecord::End::kOk ? 1 : 0;
    figures.failed += attempt.end == RunRecord::End::kFailed ? 1 : 0;
    figures.cancelled += attempt.end == RunRecord::End::kCancelled ? 1 : 0;
    figures.retried += retried ? 1 : 0;
    if (!retried) figures.durations.push_back(attempt.seconds);
    if (attempt.start <= 0) continue;
    figures.begin = figures.begin == 0 ? attempt.start : std::min(figures.begin, attempt.start);
    figures.end = std::max(figures.end, attempt.start + attempt.seconds);
    WorkerUse& use = workers[attempt.worker];
    use.worker = attempt.worker;
    ++use.attempts;
    use.busy += attempt.seconds;
  }
  for (const auto& [number, use] : workers) figures.workers.push_back(use);
  std::sort(figures.durations.begin(), figures.durations.end());
  std::vector<std::size_t> order(run.attempts.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(kMostSlowest, order.size()));
  std::partial_sort(order.begin(), middle, order.end(),
                    [&run](std::size_t a, std::size_t b) { return run.attempts[a].seconds > run.attempts[b].seconds; });
  order.erase(middle, order.end());
  figures.slowest = std::move(order);
  return figures;
}

}  // namespace mprun
