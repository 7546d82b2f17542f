// What happened to workers and tasks in one line each, in the same words on the terminal and in the log. Pure
// functions; names and messages are made safe to print.
#pragma once

#include <string>

#include "events/job_event.h"

namespace mprun {

/// "worker 3 started (pid 99)", "host started (pid 98)".
[[nodiscard]] std::string event_text(const WorkerStarted& started);
/// "worker 3 (pid 99) ended: exit code 0", "worker 3 (pid 99) died: killed by SIGSEGV".
[[nodiscard]] std::string event_text(const WorkerEnded& ended);
/// "task 7 failed: ZeroDivisionError: division by zero (worker 2, attempt 1)".
[[nodiscard]] std::string event_text(const TaskEnded& ended);
/// "task 7 is tried again: its worker died (worker 2, attempt 1)".
[[nodiscard]] std::string event_text(const TaskRetried& retried);

}  // namespace mprun
