#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "report/progress.h"
#include "report/run_report.h"

namespace mprun {
namespace {

constexpr std::size_t kMostSlowest = 10;

}  // namespace

RunFigures figures_of(const RunRecord& run) {
  RunFigures figures;
  std::map<int, WorkerFigures> workers;
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
    WorkerFigures& use = workers[attempt.worker];
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

long RunFigures::percent(double seconds) const { return end > begin ? std::lround(100 * seconds / (end - begin)) : 0; }

long RunFigures::percent_busy() const {
  double busy = 0;
  for (const WorkerFigures& use : workers) busy += use.busy;
  return workers.empty() ? 0 : percent(busy / static_cast<double>(workers.size()));
}

std::vector<const RunRecord::Attempt*> attempts_by_worker(const RunRecord& run) {
  std::vector<const RunRecord::Attempt*> attempts;
  for (const RunRecord::Attempt& attempt : run.attempts) {
    if (attempt.start > 0) attempts.push_back(&attempt);
  }
  std::stable_sort(attempts.begin(), attempts.end(), [](const auto* a, const auto* b) {
    return a->worker != b->worker ? a->worker < b->worker : a->start < b->start;
  });
  return attempts;
}

std::string brief_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f}us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g}ms", seconds * 1e3);
  return seconds < 60 ? fmt::format("{:.2f}s", seconds) : format_duration(seconds);
}

double percentile(const std::vector<double>& ascending, double part) {
  return ascending[static_cast<std::size_t>(std::floor(part * static_cast<double>(ascending.size() - 1)))];
}

const char* end_name(RunRecord::End end) {
  constexpr std::array kNames = {"ok", "failed", "cancelled", "tried again"};
  return kNames[static_cast<std::size_t>(end)];
}

std::string process_name(const RunRecord::Process& process) {
  return process.role == "host" ? "host" : fmt::format("{} {}", process.role, process.worker);
}

}  // namespace mprun
