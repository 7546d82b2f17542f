// Event log: the events that the scheduler received and the actions it returned, as text, so that a real run can be
// replayed in tests/simulation. Written by the supervisor for `mprun -d events`; both directions are here. One session
// of a job is
//   mprun-events 2
//   policy workers=2 process_per_task=0 ...
//   81234567 InputsRead count=3 ended=1 first=0       an event, after the monotonic time in nanoseconds
//     Assign slot=0 tasks=0:1,1:1                     an action it caused; a task is NUMBER:ATTEMPT
// A resumed run appends sessions to the same file. The last line may be torn: mprun may have been killed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "supervise/scheduler.h"

namespace mprun {

inline constexpr std::string_view kEventLogHead = "mprun-events 3";

struct TimedEvent {
  Nanos at = 0;
  Event event;
};

/// One line each, without its newline.
[[nodiscard]] std::string to_text(const Policy& policy);
[[nodiscard]] std::string to_text(const TimedEvent& event);
[[nodiscard]] std::string to_text(const Action& action);

/// The inverse; all fields must be there, in the order in which they are written. The error says what is wrong.
[[nodiscard]] Result<Policy> parse_policy(std::string_view line);
[[nodiscard]] Result<TimedEvent> parse_event(std::string_view line);
[[nodiscard]] Result<Action> parse_action(std::string_view line);

/// One scheduler step: the event's line and one for each action, each with its newline. To be called before the actions
/// are performed, because that may change them.
[[nodiscard]] std::string step_text(const TimedEvent& event, const std::vector<Action>& actions);

/// The file, written step by step, so that it holds what a killed mprun has decided.
class EventLog {
 public:
  /// Opens `path` for appending and writes the head of a session.
  [[nodiscard]] static Result<EventLog> open(const std::string& path, const Policy& policy);
  /// Appends what step_text() has made of a step.
  [[nodiscard]] Result<void> write(std::string_view step);

 private:
  explicit EventLog(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace mprun
