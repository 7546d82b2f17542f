// The texts for a task that ended without a result of its own. Pure; used by the supervisor.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/process_end.h"
#include "json/json_object.h"
#include "supervise/scheduler.h"

namespace mprun {

/// One sentence for a cause. `story`: how the worker ended, for Cause::kDeath, kHang and kMemory; where it was, for
/// kTaskLimit.
[[nodiscard]] std::string cause_text(Cause cause, const Policy& policy, int slot, const std::string& story);

/// A worker that ended while it ran a task.
struct Death {
  pid_t pid = 0;
  ProcessEnd end;
  bool alone = false;  ///< it had been given nothing else
};
/// What several deaths say about the task: "; task 17 ended 2 workers (...): the task is at fault", qualified where
/// another process may have sent the signal. Empty where nothing can be said: one death, or never alone.
[[nodiscard]] std::string blame_text(TaskId task, const std::vector<Death>& deaths);

/// The error of a result line that no worker wrote: type, message, traceback (null where empty). More may follow.
[[nodiscard]] JsonObject task_error(std::string_view type, std::string_view message, std::string_view traceback = {});
/// The same for a cause. Where a worker was lost, with the end of its log.
[[nodiscard]] std::string cause_json(Cause cause, const std::string& text, const std::string& log);

}  // namespace mprun
