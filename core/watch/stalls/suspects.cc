#include "watch/stalls/suspects.h"

#include <algorithm>

namespace mprun {
namespace {

constexpr int kAgreed = 3;
constexpr Nanos kLookAgain = kNanosPerSecond;
// A look costs some milliseconds: a process that only computes is looked at less and less often.
constexpr Nanos kShortestPause = 2 * kNanosPerSecond, kLongestPause = 64 * kNanosPerSecond;

}  // namespace

pid_t Suspects::look(const std::set<pid_t>& processes, Nanos now) {
  std::erase_if(suspects_, [&](const auto& suspect) { return processes.count(suspect.first) == 0; });
  pid_t found = 0;
  for (const pid_t pid : processes) {
    Suspect& suspect = suspects_[pid];
    if (suspect.reported || now < suspect.next_look) continue;
    if (is_so_(pid)) {
      suspect.pause = 0;
      suspect.next_look = now + kLookAgain;
      suspect.reported = ++suspect.agreed >= kAgreed;
      if (suspect.reported) found = pid;
    } else {
      suspect.agreed = 0;
      suspect.pause = std::clamp(2 * suspect.pause, kShortestPause, kLongestPause);
      suspect.next_look = now + suspect.pause;
    }
  }
  return found;
}

pid_t Suspects::find_now(const std::set<pid_t>& processes) const {
  const auto found = std::find_if(processes.begin(), processes.end(), is_so_);
  return found == processes.end() ? 0 : *found;
}

}  // namespace mprun
