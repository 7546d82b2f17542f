// The words for a task that ended without a result of its own. Pure; used by the supervisor.
#pragma once

#include <string>

#include "supervise/scheduler.h"

namespace mprun {

/// One sentence for a cause. `story`: how the worker ended, for Cause::kDeath, kHang and kMemory; where it was, for
/// kTaskLimit.
[[nodiscard]] std::string cause_text(Cause cause, const Policy& policy, int slot, const std::string& story);

/// The error of a result line: type, message, traceback (null) and, where a worker was lost, its last words.
[[nodiscard]] std::string cause_json(Cause cause, const std::string& text, const std::string& log);

}  // namespace mprun
