#include "watch/hang.h"

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

bool is_idle_part(const Hang& hang) { return hang.verdict == HangVerdict::kPartialDeadlock && hang.cause.looks_idle; }

bool is_proved_hang(const Hang& hang) { return is_proved(hang.verdict) && !is_idle_part(hang); }

}  // namespace mprun
