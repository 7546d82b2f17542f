#include "watch/stalls/lost_helper.h"

#include <algorithm>
#include <utility>

namespace mprun {
namespace {

constexpr int kAgreed = 3;
constexpr int kMostReadings = 20;
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

bool any_in_pool(const PythonStacks& stacks, std::string_view function) {
  return std::any_of(stacks.threads.begin(), stacks.threads.end(),
                     [function](const PythonThread& thread) { return is_in_pool(thread, function); });
}

bool main_waits_for_pool(const PythonStacks& stacks, pid_t pid) {
  return std::any_of(stacks.threads.begin(), stacks.threads.end(),
                     [pid](const PythonThread& thread) { return thread.tid == pid && is_in_pool(thread, ""); });
}

bool are_whole(const PythonStacks& stacks) {
  return std::all_of(stacks.threads.begin(), stacks.threads.end(),
                     [](const PythonThread& thread) { return thread.whole && !thread.frames.empty(); });
}

// The main thread waits for the pool, and no thread takes its results. A thread that spins changes its frames while
// they are read, so that most readings have to be repeated.
bool has_lost_helper(const LostHelperWatch::ReadStacks& read_stacks, pid_t pid) {
  for (int i = 0; i < kMostReadings; ++i) {
    const PythonStacks stacks = read_stacks(pid);
    if (!main_waits_for_pool(stacks, pid)) return false;
    if (!are_whole(stacks)) continue;
    return any_in_pool(stacks, "Pool._handle_workers") && !any_in_pool(stacks, "Pool._handle_results");
  }
  return false;
}

}  // namespace

LostHelperWatch::LostHelperWatch(ProcSource* proc, ReadStacks read_stacks) : read_stacks_(std::move(read_stacks)) {
  if (!read_stacks_) read_stacks_ = [proc](pid_t pid) { return read_python_stacks(proc, pid); };
}

pid_t LostHelperWatch::look(const std::set<pid_t>& processes, Nanos now) {
  std::erase_if(suspects_, [&](const auto& suspect) { return processes.count(suspect.first) == 0; });
  pid_t found = 0;
  for (const pid_t pid : processes) {
    Suspect& suspect = suspects_[pid];
    if (suspect.reported || now < suspect.next_look) continue;
    if (has_lost_helper(read_stacks_, pid)) {
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
