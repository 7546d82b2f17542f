#include "supervise/command_crew.h"
#include "supervise/rank_crew.h"
#include "supervise/worker_crew.h"

namespace mprun {
namespace {

Result<std::unique_ptr<Crew>> make_command_crew(const LaunchPlan& plan, CrewListener* listener) {
  std::vector<std::pair<Fd, Fd>> logs;
  for (int slot = 0; slot < plan.spec->processes; ++slot) {
    auto pair = open_logs(plan.run_dir, "worker-" + std::to_string(slot));
    if (!pair) return pair.error();
    logs.push_back(std::move(*pair));
  }
  return std::unique_ptr<Crew>(std::make_unique<CommandCrew>(plan, std::move(logs), listener));
}

}  // namespace

Result<std::unique_ptr<Crew>> make_crew(const LaunchPlan& plan, CrewListener* listener) {
  const JobSpec& spec = *plan.spec;
  if (spec.kind == JobKind::kCommand || (spec.kind == JobKind::kRanks && !spec.script_is_python)) {
    return make_command_crew(plan, listener);
  }
  if (spec.kind == JobKind::kRanks) return std::unique_ptr<Crew>(std::make_unique<RankCrew>(plan, listener));
  auto board = Board::create(spec.processes);
  if (!board) return board.error();
  return std::unique_ptr<Crew>(std::make_unique<WorkerCrew>(plan, std::move(*board), listener));
}

}  // namespace mprun
