// What the supervisor does about workers that hang, take too long or use too much memory.
#include <algorithm>

#include "json/words.h"
#include "supervise/supervisor.h"

namespace mprun {

void Supervisor::look_for_hangs() {
  const Nanos now = monotonic_now();
  if (now < setup_.watch->next_look()) return;
  const bool has_others = wanted_shared_ > 0 || setup_.rendezvous != nullptr;
  if (has_others && scheduler_->busy() == 0) return;  // all wait for other mpruns, which may take hours
  setup_.watch->expect({hosts_, may_start_another()});
  if (const auto finding = setup_.watch->look(now)) act_on(*finding);
  if (const auto warning = setup_.watch->take_warning()) {
    notice(Notice::Kind::kWarning, *warning, LogComponent::kWatch);
  }
}

// A slot without a process gets one as soon as there is a task for it: one to be read, to be tried again later, or to
// be taken back from others.
bool Supervisor::may_start_another() const {
  if (slots_.size() >= static_cast<std::size_t>(inputs_.slots())) return false;
  std::uint64_t handed_out = scheduler_->held();
  for (int slot = 0; slot < inputs_.slots(); ++slot) handed_out += scheduler_->in_flight(slot);
  return !inputs_ended_ || scheduler_->counts().read > scheduler_->counts().done() + handed_out;
}

// The workers and hosts that are stuck: what is below one that can go on is its own affair.
std::vector<pid_t> Supervisor::own_processes(const HangMonitor::Finding& finding) const {
  std::vector<pid_t> own;
  for (const auto& [pid, place] : finding.stuck) {
    if (slots_.count(pid) != 0 || hosts_.count(pid) != 0) own.push_back(pid);
  }
  return own;
}

void Supervisor::act_on(const HangMonitor::Finding& finding) {
  publish(finding.event);
  if (finding.is_proved) engine_->stand_still(own_processes(finding));
  const OnHang wanted = setup_.spec->watch.on_hang;
  if (wanted == OnHang::kReport) return;
  std::vector<int> stuck_slots;
  for (const auto& [pid, slot] : slots_) {
    const auto stuck = finding.stuck.find(pid);
    if (stuck == finding.stuck.end()) continue;
    hung_[slot] = (stuck->second.empty() ? "it hung: " : "it hung at " + stuck->second + ": ") + finding.reason;
    stuck_slots.push_back(slot);
    if (policy_.ranks)
      notice(Notice::Kind::kError, "rank " + std::to_string(slot) + " hung: it is ended, and the others with it",
             LogComponent::kWatch);
  }
  if (wanted == OnHang::kKill) {
    const bool of_host =
        std::any_of(hosts_.begin(), hosts_.end(), [&](pid_t host) { return finding.stuck.count(host); });
    // Processes that are stuck below a worker that can go on are left to that worker.
    if (!finding.of_all && stuck_slots.empty() && !of_host) return;
    for (const auto& [pid, slot] : slots_) {
      if (finding.stuck.count(pid) == 0) hung_[slot] = "the job hung: " + finding.reason;
    }
    rank_failure_ = "the job hung: " + finding.reason;
    post(event::JobHung{});
    return;
  }
  for (const int slot : stuck_slots) post(event::WorkerHung{slot});
  if (!finding.ends_start || !slots_.empty()) return;
  // The host hangs before there is any worker: in `setup`, or an import.
  std::string reason = "it hung while it was starting";
  for (const auto& [pid, place] : finding.stuck) {
    if (!place.empty()) reason = "it hung while it was starting, at " + place;
  }
  on_start_failed(reason + ": " + finding.reason);
}

// Finds where the process was that took too long, for the report and for the failure.
void Supervisor::report_overdue(int slot, Cause cause) {
  constexpr int kMostReports = 100;
  if (overdue_reports_ >= kMostReports) return;
  const auto process =
      std::find_if(slots_.begin(), slots_.end(), [slot](const auto& entry) { return entry.second == slot; });
  if (process == slots_.end()) return;
  const bool joins = cause == Cause::kJoinLimit;
  const auto task = scheduler_->current(slot);
  const std::string label =
      joins ? "the end of worker " + std::to_string(slot) : "task " + std::to_string(task ? task->task : 0);
  const double seconds = to_seconds(joins ? policy_.join_limit : policy_.task_limit.value_or(0));
  auto finding = setup_.watch->explain_limit(process->first, label, seconds);
  if (overdue_reports_++ > 0) finding.event.text = "";  // the others are in the run directory
  publish(finding.event);
  hung_[slot] = finding.stuck[process->first];
}

void Supervisor::look_at_memory(Nanos now) {
  for (const MemoryUse::Excess& excess : vital_signs_.look_at_memory(slots_, now)) {
    const auto worker = slots_.find(excess.worker);
    if (worker == slots_.end()) continue;
    const int slot = worker->second;
    const auto task = scheduler_->current(slot);
    const std::string user = task ? "task " + std::to_string(task->task) : "worker " + std::to_string(slot);
    const std::string story = user + " used " + size_text(excess.bytes) + " of memory; limits.memory_per_worker is " +
                              size_text(*setup_.spec->limits.memory_per_worker);
    hung_[slot] = story;
    if (!task) notice(Notice::Kind::kWarning, story + ": it was ended", LogComponent::kWatch);
    post(event::WorkerTooLarge{slot});
  }
}

}  // namespace mprun
