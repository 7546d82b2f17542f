#include "watch/stalls/lost_result.h"

#include <algorithm>

namespace mprun {
namespace {

constexpr int kMostReadings = 20;
constexpr std::string_view kPoolModule = "/multiprocessing/pool.py", kPackage = "/multiprocessing/",
                           kThreading = "/threading.py", kConnection = "/multiprocessing/connection.py";

bool is_pools(const PythonFrame& frame, std::string_view function) {
  return frame.file.ends_with(kPoolModule) && (function.empty() || frame.function == function);
}

// A worker that replaces another is forked by the pool's thread: what that did is no frame of the worker.
bool is_in_pool(const PythonThread& thread, std::string_view function) {
  const auto frames = own_frames(thread.frames);
  return std::any_of(frames.begin(), frames.end(),
                     [function](const PythonFrame& frame) { return is_pools(frame, function); });
}

bool any_in_pool(const PythonStacks& stacks, std::string_view function) {
  return std::any_of(stacks.threads.begin(), stacks.threads.end(),
                     [function](const PythonThread& thread) { return is_in_pool(thread, function); });
}

bool are_whole(const PythonStacks& stacks) {
  return std::all_of(stacks.threads.begin(), stacks.threads.end(),
                     [](const PythonThread& thread) { return thread.whole && !thread.frames.empty(); });
}

// From the innermost frame down to that function of the pool, the thread is in no code but multiprocessing's own and
// that of locks: it runs no task, no callback, and no generator of inputs.
bool only_waits_in(const PythonThread& thread, std::string_view function) {
  for (const PythonFrame& frame : own_frames(thread.frames)) {
    if (is_pools(frame, function)) return true;
    if (frame.file.find(kPackage) == std::string::npos && !frame.file.ends_with(kThreading)) return false;
  }
  return false;
}

// The thread that hands out tasks waits for one in C code: while a generator makes it, it is further inside.
bool waits_for_task_to_hand_out(const PythonThread& thread) {
  return !thread.frames.empty() && is_pools(thread.frames.front(), "Pool._handle_tasks");
}

// The thread that takes results waits for one: it delivers none.
bool waits_for_result(const PythonThread& thread) {
  const auto frames = own_frames(thread.frames);
  if (frames.empty() || !only_waits_in(thread, "Pool._handle_results")) return false;
  return frames.front().file.ends_with(kConnection) || is_pools(frames.front(), "Pool._handle_results");
}

// The main thread has not been woken: that would take the lock of the condition next.
bool waits_to_be_woken(const PythonThread& main) {
  if (main.frames.empty() || !only_waits_in(main, "")) return false;
  const PythonFrame& frame = main.frames.front();
  return frame.file.ends_with(kThreading) &&
         (frame.function == "Condition.wait" || frame.function.starts_with("Thread."));
}

// What one thread, of the pool's process or of one below, says of the pool.
bool is_busy(const PythonThread& thread, const IsRunning& runs) {
  if (is_in_pool(thread, "worker")) return runs(thread.tid) || !only_waits_in(thread, "worker");
  if (is_in_pool(thread, "Pool._handle_tasks")) return runs(thread.tid) || !waits_for_task_to_hand_out(thread);
  if (is_in_pool(thread, "Pool._handle_results")) return runs(thread.tid) || !waits_for_result(thread);
  return false;
}

bool any_is_busy(const PythonStacks& stacks, const IsRunning& runs) {
  return std::any_of(stacks.threads.begin(), stacks.threads.end(),
                     [&runs](const PythonThread& thread) { return is_busy(thread, runs); });
}

// The pool's thread for results runs a callback, which waits for another result: of the same pool if there is one only.
bool waits_in_callback(const PythonStacks& stacks) {
  const auto pools = std::count_if(stacks.threads.begin(), stacks.threads.end(), [](const PythonThread& thread) {
    return is_in_pool(thread, "Pool._handle_results");
  });
  return pools == 1 && std::any_of(stacks.threads.begin(), stacks.threads.end(), [](const PythonThread& thread) {
           return is_in_pool(thread, "Pool._handle_results") && is_in_pool(thread, "ApplyResult.wait");
         });
}

const PythonThread* main_of(const PythonStacks& stacks, pid_t pid) {
  const auto main = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                 [pid](const PythonThread& thread) { return thread.tid == pid; });
  return main == stacks.threads.end() ? nullptr : &*main;
}

// A process without Python counts as read.
bool is_read(const PythonStacks& stacks, pid_t pid) {
  const PythonThread* main = main_of(stacks, pid);
  return main == nullptr ? stacks.threads.empty() : main->whole && !main->frames.empty();
}

}  // namespace

ReadStacks stack_reader(ProcSource* proc) {
  return [proc](pid_t pid) { return read_python_stacks(proc, pid); };
}

pid_t receiver_of_pool(const ReadStacks& read_stacks, pid_t pid) {
  const PythonStacks stacks = read_stacks(pid);
  const PythonThread* main = main_of(stacks, pid);
  if (main == nullptr || !is_in_pool(*main, "")) return 0;
  const auto receiver = std::find_if(stacks.threads.begin(), stacks.threads.end(), waits_for_result);
  return receiver == stacks.threads.end() ? 0 : receiver->tid;
}

bool waits_for_pool(const ReadStacks& read_stacks, pid_t pid) {
  const PythonStacks stacks = read_stacks(pid);
  const PythonThread* main = main_of(stacks, pid);
  return main != nullptr && is_in_pool(*main, "");
}

// A thread that spins changes its frames while they are read, so that most readings have to be repeated.
bool has_lost_helper(const ReadStacks& read_stacks, pid_t pid) {
  for (int i = 0; i < kMostReadings; ++i) {
    const PythonStacks stacks = read_stacks(pid);
    const PythonThread* main = main_of(stacks, pid);
    if (main == nullptr || !is_in_pool(*main, "")) return false;
    if (!are_whole(stacks)) continue;
    if (!any_in_pool(stacks, "Pool._handle_workers")) return false;
    return !any_in_pool(stacks, "Pool._handle_results") || waits_in_callback(stacks);
  }
  return false;
}

std::set<pid_t> keepers_beside_callback(const ReadStacks& read_stacks, pid_t pid) {
  for (int i = 0; i < kMostReadings; ++i) {
    const PythonStacks stacks = read_stacks(pid);
    const PythonThread* main = main_of(stacks, pid);
    if (main == nullptr || !is_in_pool(*main, "")) return {};
    if (!are_whole(stacks)) continue;
    std::set<pid_t> keepers;
    bool is_in_callback = false;
    for (const PythonThread& thread : stacks.threads) {
      if (is_in_pool(thread, "Pool._handle_workers")) keepers.insert(thread.tid);
      is_in_callback |= is_in_pool(thread, "Pool._handle_results") && !waits_for_result(thread);
    }
    return is_in_callback ? keepers : std::set<pid_t>();
  }
  return {};
}

bool has_lost_task(const ReadStacks& read_stacks, pid_t pid, const std::vector<pid_t>& below, const IsRunning& runs) {
  const PythonStacks stacks = read_stacks(pid);
  const PythonThread* main = main_of(stacks, pid);
  const bool has_helpers = any_in_pool(stacks, "Pool._handle_results") && any_in_pool(stacks, "Pool._handle_tasks");
  if (main == nullptr || runs(pid) || !waits_to_be_woken(*main)) return false;
  if (!has_helpers || any_is_busy(stacks, runs)) return false;
  bool has_worker = false;
  for (const pid_t worker : below) {
    const PythonStacks own = read_stacks(worker);
    if (!is_read(own, worker) || any_is_busy(own, runs)) return false;
    has_worker = has_worker || any_in_pool(own, "worker");
  }
  return has_worker;
}

}  // namespace mprun
