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

}  // namespace mprun
