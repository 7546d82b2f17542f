#include "supervise/phase_text.h"

namespace mprun {
namespace {

std::string waiting_for(std::uint64_t count, const char* one, const char* many, const char* what) {
  return "waiting for " + std::to_string(count) + " " + (count == 1 ? one : many) + what;
}

std::string waiting_for_start(const Standing& standing) {
  if (!standing.stage.empty()) return std::string(standing.stage);
  if (standing.host && standing.processes == 0) return "waiting for the host to start";
  if (standing.starting == 1) return "waiting for worker " + std::to_string(standing.first_starting) + " to start";
  return standing.starting > 1 ? waiting_for(static_cast<std::uint64_t>(standing.starting), "", "workers", " to start")
                               : "";
}

std::string waiting_for_end(const Standing& standing) {
  if (standing.busy > 0) {
    return waiting_for(static_cast<std::uint64_t>(standing.busy), "running task", "running tasks", "");
  }
  if (standing.processes > 0) {
    return waiting_for(static_cast<std::uint64_t>(standing.processes), "worker", "workers", " to end");
  }
  return standing.host ? "waiting for the host to end" : "";
}

}  // namespace

PhaseText phase_text(const Standing& standing) {
  if (standing.stopping) return {"stopping", waiting_for_end(standing)};
  if (standing.done) return {"finishing", waiting_for_end(standing)};
  if (standing.busy > 0 && standing.processes > 0) return {};
  if (!standing.was_ready || standing.busy > 0) return {"starting", waiting_for_start(standing)};
  if (standing.starting > 0) return {"running", waiting_for_start(standing)};
  if (standing.waiting_tasks > 0) {
    return {"running", waiting_for(standing.waiting_tasks, "task", "tasks", " to be tried again")};
  }
  if (standing.needs_shared) {
    return {"running", "waiting for " + (standing.waits_for.empty() ? "blocks of tasks" : standing.waits_for)};
  }
  if (standing.needs_input) {
    return {"running", standing.stdin_input ? "waiting for input on stdin" : "waiting for input"};
  }
  return {};
}

}  // namespace mprun
