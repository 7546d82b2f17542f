#include "launch/spawn_launcher.h"

#include <utility>

namespace mprun {

void SpawnLauncher::launch(int slot) {
  const auto request = listener_->prepare_launch(slot);
  if (!request) return;
  const SpawnPlan spawn = python_plan(plan_, request->environment, request->channel.get(), request->results.get(),
                                      request->out.get(), request->err.get());
  SpawnFailure failure;
  const pid_t pid = spawn_process(spawn, &failure);
  if (pid < 0) {
    listener_->on_launch_failed(explain_spawn_failure(plan_, failure));
    return;
  }
  const ProcessRef process = ProcessRef::of_child(pid);
  started_[pid] = {slot, process};
  listener_->on_launched(slot, process);
}

bool SpawnLauncher::child_gone(pid_t pid, ProcessEnd end) {
  const auto ended = started_.extract(pid);
  if (ended.empty()) return false;
  listener_->on_process_gone(ended.mapped().slot, ended.mapped().process, end);
  return true;
}

}  // namespace mprun
