#include "base/run_layout.h"
#include "supervise/command_pool.h"
#include "supervise/rank_pool.h"
#include "supervise/task_pool.h"

namespace mprun {
namespace {

Result<std::unique_ptr<WorkerPool>> make_command_pool(const LaunchPlan& plan, WorkerPoolListener* listener) {
  std::vector<std::pair<Fd, Fd>> logs;
  for (int slot = 0; slot < plan.spec->processes; ++slot) {
    auto pair = open_logs(plan.run_dir, worker_name(slot));
    if (!pair) return pair.error();
    logs.push_back(std::move(*pair));
  }
  return std::unique_ptr<WorkerPool>(std::make_unique<CommandPool>(plan, std::move(logs), listener));
}

}  // namespace

Result<std::unique_ptr<WorkerPool>> make_worker_pool(const LaunchPlan& plan, WorkerPoolListener* listener) {
  const JobSpec& spec = *plan.spec;
  if (spec.kind == JobKind::kCommand || (spec.kind == JobKind::kRanks && !spec.script_is_python)) {
    return make_command_pool(plan, listener);
  }
  if (spec.kind == JobKind::kRanks) return std::unique_ptr<WorkerPool>(std::make_unique<RankPool>(plan, listener));
  auto claims = ClaimTable::create(spec.processes);
  if (!claims) return claims.error();
  return std::unique_ptr<WorkerPool>(std::make_unique<TaskPool>(plan, std::move(*claims), listener));
}

}  // namespace mprun
