#include "watch/hang.h"

#include <algorithm>

namespace mprun {

const char* to_string(HangVerdict verdict) {
  switch (verdict) {
    case HangVerdict::kLive:
      return "live";
    case HangVerdict::kDeadlock:
      return "deadlock";
    case HangVerdict::kPartialDeadlock:
      return "partial-deadlock";
    case HangVerdict::kOrphanedLock:
      return "orphaned-lock";
    case HangVerdict::kStalled:
      return "stalled";
    case HangVerdict::kOverdue:
      return "overdue";
  }
  return "";
}

bool is_proved(HangVerdict verdict) {
  return verdict == HangVerdict::kDeadlock || verdict == HangVerdict::kPartialDeadlock ||
         verdict == HangVerdict::kOrphanedLock;
}

namespace {

// A main thread in Ruby's Kernel#sleep without a limit, as of a server that sleeps until SIGTERM raises an exception.
// Ruby does not count it as a deadlock either (SLEEP_DEADLOCKABLE in thread.c).
bool sleeps_in_ruby(const HungThread& thread) {
  return std::any_of(thread.native.begin(), thread.native.end(),
                     [](const std::string& frame) { return frame.starts_with("rb_thread_sleep_forever ("); });
}

}  // namespace

bool is_idle(const Hang& hang) {
  if (!hang.cause.looks_idle) return false;
  if (hang.verdict == HangVerdict::kPartialDeadlock) return true;
  return std::any_of(hang.processes.begin(), hang.processes.end(), [](const HungProcess& process) {
    return std::any_of(process.threads.begin(), process.threads.end(), [&process](const HungThread& thread) {
      return thread.tid == process.pid && sleeps_in_ruby(thread);
    });
  });
}

bool is_proved_hang(const Hang& hang) { return is_proved(hang.verdict) && !is_idle(hang); }

}  // namespace mprun
