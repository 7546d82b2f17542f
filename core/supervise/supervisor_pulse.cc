// What the supervisor reports of the job as a whole, at least ten times a second: its progress, what it waits for,
// and what each worker does and uses.
#include "supervise/supervisor.h"

namespace mprun {
namespace {

constexpr Nanos kReportEvery = 100 * kNanosPerMilli;

}  // namespace

bool Supervisor::reads_stdin() const {
  const InputSpec& inputs = setup_.spec->inputs;
  const auto* lines = std::get_if<LinesInput>(&inputs);
  const auto* jsonl = std::get_if<JsonlInput>(&inputs);
  return (lines != nullptr && lines->path == "-") || (jsonl != nullptr && jsonl->path == "-");
}

// `end`: the last phase of all, when nothing is alive any more.
void Supervisor::pulse(std::string_view end) {
  const Counts counts = scheduler_->counts();
  const PhaseText text = phase_text(phase_facts());
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

PhaseFacts Supervisor::phase_facts() const {
  PhaseFacts facts;
  facts.stopping = scheduler_->stopping() != Cause::kNone || scheduler_->start_failed();
  facts.done = inputs_ended_ && scheduler_->counts().done() >= scheduler_->counts().read;
  facts.was_ready = was_ready_;
  facts.busy = scheduler_->busy();
  facts.processes = static_cast<int>(slots_.size());
  facts.host = !hosts_.empty();
  facts.needs_input = waiting_for_input_;
  facts.stdin_input = reads_stdin();
  facts.waiting_tasks = scheduler_->waiting();
  facts.needs_shared = wanted_shared_ > 0;
  if (facts.busy > 0 && facts.processes > 0) return facts;  // tasks run: the rest costs time
  for (int slot = 0; slot < inputs_.slots(); ++slot) {
    if (scheduler_->state(slot) != WorkerState::kStarting) continue;
    if (facts.starting++ == 0) facts.first_starting = slot;
  }
  if (facts.needs_shared) facts.waits_for = setup_.shared_tasks->waits_for();
  if (setup_.rendezvous != nullptr && facts.busy == 0) facts.other_shards = setup_.rendezvous->waits_for();
  const auto host_stage = stages_.find(-1);
  const auto stage = host_stage != stages_.end() ? host_stage : stages_.find(facts.first_starting);
  if (stage != stages_.end()) facts.stage = stage->second;
  return facts;
}

void Supervisor::report_workers(Nanos now) {
  const bool measured = vital_signs_.look_at_usage(slots_, now);
  if (!measured && now - last_report_ < kReportEvery) return;
  last_report_ = now;
  std::vector<std::int32_t> pids(static_cast<std::size_t>(inputs_.slots()));
  for (const auto& [pid, slot] : slots_) pids[static_cast<std::size_t>(slot)] = pid;
  std::vector<WorkerView> workers;
  workers.reserve(pids.size());
  for (int slot = 0; slot < inputs_.slots(); ++slot) {
    const auto state = scheduler_->state(slot);
    if (!state) continue;
    const Usage::Slot& used = vital_signs_.of(slot);
    WorkerView view{slot, pids[static_cast<std::size_t>(slot)], *state, {}, 0, used.cpu, used.load, used.memory};
    if (view.pid != 0 && used.stopped) view.state = WorkerState::kStopped;
    if (const auto task = scheduler_->current(slot)) {
      view.task = task->task;
      view.task_seconds = to_seconds(now - scheduler_->task_started(slot));
    }
    view.cpus = to_string(cpus_of(*setup_.spec, slot));
    workers.push_back(std::move(view));
  }
  publish(WorkersSeen{workers, vital_signs_.measured()});
}

}  // namespace mprun
