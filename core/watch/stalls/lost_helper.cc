#include "watch/stalls/lost_helper.h"

#include <algorithm>

#include "watch/stacks/python_stack.h"

namespace mprun {
namespace {

constexpr int kAgreed = 3;
constexpr Nanos kLookAgain = kNanosPerSecond;
// A look costs some milliseconds: a process that only computes is looked at less and less often.
constexpr Nanos kShortestPause = 2 * kNanosPerSecond, kLongestPause = 64 * kNanosPerSecond;
constexpr std::string_view kPoolModule = "/multiprocessing/pool.py";

bool is_in_pool(const PythonThread& thread, std::string_view function) {
  const auto frames = own_frames(thread.frames);  // a worker that replaces another is forked by the pool's thread
  return std::any_of(frames.begin(), frames.end(), [&](const PythonFrame& frame) {
    return frame.file.ends_with(kPoolModule) && (function.empty() || frame.function == function);
  });
}

// The main thread waits for the pool, and no thread takes its results.
bool has_lost_helper(ProcSource* proc, pid_t pid) {
  const PythonStacks stacks = read_python_stacks(proc, pid);
  bool waits = false, works = false, takes = false;
  for (const PythonThread& thread : stacks.threads) {
    if (thread.tid == pid) waits = is_in_pool(thread, "");
    works = works || is_in_pool(thread, "Pool._handle_workers");
    takes = takes || is_in_pool(thread, "Pool._handle_results") || thread.frames.empty() || !thread.whole;
  }
  return waits && works && !takes;
}

}  // namespace

pid_t LostHelperWatch::look(const std::set<pid_t>& processes, Nanos now) {
  std::erase_if(suspects_, [&](const auto& suspect) { return processes.count(suspect.first) == 0; });
  pid_t found = 0;
  for (const pid_t pid : processes) {
    Suspect& suspect = suspects_[pid];
    if (suspect.reported || now < suspect.next_look) continue;
    if (has_lost_helper(proc_, pid)) {
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

}  // namespace mprun
