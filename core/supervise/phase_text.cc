#include "supervise/phase_text.h"

namespace mprun {
namespace {

std::string waiting_for(std::uint64_t count, const char* one, const char* many, const char* what) {
  return "waiting for " + std::to_string(count) + " " + (count == 1 ? one : many) + what;
}

std::string waiting_for_start(const PhaseFacts& facts) {
  if (!facts.stage.empty()) return std::string(facts.stage);
  if (facts.host && facts.processes == 0) return "waiting for the host to start";
  if (facts.starting == 1) return "waiting for worker " + std::to_string(facts.first_starting) + " to start";
  return facts.starting > 1 ? waiting_for(static_cast<std::uint64_t>(facts.starting), "", "workers", " to start") : "";
}

std::string waiting_for_end(const PhaseFacts& facts) {
  if (facts.busy > 0) {
    return waiting_for(static_cast<std::uint64_t>(facts.busy), "running task", "running tasks", "");
  }
  if (facts.processes > 0) {
    return waiting_for(static_cast<std::uint64_t>(facts.processes), "worker", "workers", " to end");
  }
  return facts.host ? "waiting for the host to end" : "";
}

}  // namespace

PhaseText phase_text(const PhaseFacts& facts) {
  if (facts.stopping) return {"stopping", waiting_for_end(facts)};
  if (facts.done) return {"finishing", waiting_for_end(facts)};
  if (facts.busy > 0 && facts.processes > 0) return {};
  if (!facts.other_shards.empty()) return {"running", "waiting for " + facts.other_shards};
  if (!facts.was_ready || facts.busy > 0) return {"starting", waiting_for_start(facts)};
  if (facts.starting > 0) return {"running", waiting_for_start(facts)};
  if (facts.waiting_tasks > 0) {
    return {"running", waiting_for(facts.waiting_tasks, "task", "tasks", " to be tried again")};
  }
  if (facts.needs_shared) {
    return {"running", "waiting for " + (facts.waits_for.empty() ? "blocks of tasks" : facts.waits_for)};
  }
  if (facts.needs_input) {
    return {"running", facts.stdin_input ? "waiting for input on stdin" : "waiting for input"};
  }
  return {};
}

}  // namespace mprun
