// What the supervisor reports of the job as a whole, at least ten times a second: its progress, and what it waits for.
#include "supervise/supervisor.h"

namespace mprun {
namespace {

bool reads_stdin(const InputSpec& inputs) {
  const auto* lines = std::get_if<LinesInput>(&inputs);
  const auto* jsonl = std::get_if<JsonlInput>(&inputs);
  return (lines != nullptr && lines->path == "-") || (jsonl != nullptr && jsonl->path == "-");
}

}  // namespace

// `end`: the last phase of all, when nothing is alive any more.
void Supervisor::pulse(std::string_view end) {
  const Counts counts = scheduler_->counts();
  const PhaseText text = phase_text(standing());
  Pulse pulse;
  pulse.done = counts.done();
  pulse.ok = counts.ok;
  pulse.failed = counts.failed;
  pulse.cancelled = counts.cancelled;
  pulse.retried = counts.retried;
  pulse.total = inputs_ended_ ? std::optional(counts.read) : policy_.total;
  pulse.busy = scheduler_->busy();
  pulse.workers = policy_.workers;
  pulse.elapsed = to_seconds(monotonic_now() - begun_);
  pulse.phase = end.empty() ? text.phase : end;
  if (end.empty()) pulse.doing = text.doing;
  pulse.bytes = received_ + (setup_.tensor_bytes ? setup_.tensor_bytes() : 0);
  publish(pulse);
  last_pulse_ = monotonic_now();
}

Standing Supervisor::standing() const {
  Standing standing;
  standing.stopping = scheduler_->stopping() != Cause::kNone || scheduler_->start_failed();
  standing.done = inputs_ended_ && scheduler_->counts().done() >= scheduler_->counts().read;
  standing.was_ready = was_ready_;
  standing.busy = scheduler_->busy();
  standing.processes = static_cast<int>(slots_.size());
  standing.host = !hosts_.empty();
  standing.needs_input = waiting_for_input_;
  standing.stdin_input = reads_stdin(setup_.spec->inputs);
  standing.waiting_tasks = scheduler_->waiting();
  standing.needs_shared = wanted_shared_ > 0;
  if (standing.busy > 0 && standing.processes > 0) return standing;  // tasks run: the rest costs time
  for (int slot = 0; slot < static_cast<int>(held_.size()); ++slot) {
    if (scheduler_->state(slot) != WorkerState::kStarting) continue;
    if (standing.starting++ == 0) standing.first_starting = slot;
  }
  if (standing.needs_shared) standing.waits_for = setup_.shared_tasks->waits_for();
  const auto host_stage = stages_.find(-1);
  const auto stage = host_stage != stages_.end() ? host_stage : stages_.find(standing.first_starting);
  if (stage != stages_.end()) standing.stage = stage->second;
  return standing;
}

}  // namespace mprun
