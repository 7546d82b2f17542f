#include "report/event_text.h"

#include <fmt/format.h>

#include "report/failure_digest.h"
#include "report/safe_text.h"

namespace mprun {
namespace {

/// "worker 3", "host".
template <typename Event>
[[nodiscard]] std::string process_of(const Event& event) {
  const std::string role = event.role.empty() ? "worker" : one_line(event.role);
  return role == "host" ? role : fmt::format("{} {}", role, event.worker);
}

}  // namespace

std::string event_text(const WorkerStarted& started) {
  return fmt::format("{} started (pid {})", process_of(started), started.pid);
}

std::string event_text(const WorkerEnded& ended) {
  const std::string end = ended.end.signal != 0 ? "killed by " + to_string(ended.end) : to_string(ended.end);
  return fmt::format("{} (pid {}) {}: {}", process_of(ended), ended.pid, ended.expected ? "ended" : "died", end);
}

std::string event_text(const TaskEnded& ended) {
  const std::string who = fmt::format("(worker {}, attempt {})", ended.worker, ended.attempt);
  if (ended.status == TaskStatus::kOk) return fmt::format("task {} is done {}", ended.task, who);
  const char* how = ended.status == TaskStatus::kFailed ? "failed" : "was cancelled";
  return fmt::format("task {} {}: {} {}", ended.task, how, read_failure(ended.result).headline(), who);
}

std::string event_text(const TaskRetried& retried) {
  return fmt::format("task {} is tried again: {} (worker {}, attempt {})", retried.task, one_line(retried.reason),
                     retried.worker, retried.attempt);
}

}  // namespace mprun
