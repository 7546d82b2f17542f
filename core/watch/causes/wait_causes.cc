// Causes that follow from the wait-for graph: rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"
#include "watch/judge/library_waits.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

// A thread that a pool or an executor has started, with no task of the user's.
bool helps_pool(const std::vector<PythonFrame>& frames) {
  if (has_own_code(frames)) return false;
  return is_library_helper(frames) || std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
           return frame.file.ends_with(kPool) || frame.file.find("/concurrent/futures/") != std::string::npos;
         });
}

// The thread asks the server of a manager to wait for an event, a condition or an item of a queue, and it does.
bool asks_manager_to_wait(const Evidence& evidence, const JudgedThread& thread) {
  return thread.wait.kind == WaitKind::kSocket &&
         evidence.is_in(thread.sample->tid, kManagers, "BaseProxy._callmethod") &&
         find_stuck(evidence, [&](const JudgedThread& serves) {
           const auto frames = evidence.python.find(serves.sample->tid);
           return evidence.is_in(serves.sample->tid, kManagers, "Server.serve_client") &&
                  frames->second.front().function == "Condition.wait";
         }) != nullptr;
}

// Functions that atexit.register() was given have no Python function above them. Since 3.13 the function in C that
// calls them has no name in a stripped Python, but they stand where otherwise the main module does; in one built from
// source, Py_RunMain() may be part of its caller. A greenlet's outermost function has none above it either; below it
// the main module still runs.
bool runs_handlers_of_atexit(const Evidence& evidence, pid_t tid) {
  const auto frames = evidence.python.find(tid);
  if (frames == evidence.python.end() || frames->second.empty()) return false;
  if (evidence.is_in_native(tid, "Py_FinalizeEx (")) return true;
  const PythonFrame& outermost = frames->second.back();
  const bool is_main = evidence.is_in_native(tid, "Py_RunMain (") || evidence.is_in_native(tid, "Py_BytesMain (");
  return is_main && outermost.function != "<module>" && outermost.file != "<frozen runpy>" &&
         !evidence.is_in_native(tid, "PyEval_EvalCode (");
}

}  // namespace

// The signal came before the wait began, and will not come again.
std::optional<Explanation> child_signal_missed(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSignal && evidence.snapshot->process(thread.sample->pid)->children.empty();
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) +
                     " waits for the signal of a child's end, and has no child: the signal came "
                     "before it began to wait, or the child was never started"};
}

std::optional<Explanation> barrier_short(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.is_in(thread.sample->tid, "/threading.py", "Barrier.wait") ||
           evidence.is_in(thread.sample->tid, "/mprun/sync.py", "Barrier.wait");
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits at a barrier that not all parties reach"};
}

// A server whose client was to be one of its children. Others that it would serve may come from outside.
std::optional<Explanation> connecting_child_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr) return std::nullopt;
  const JudgedThread* accepts = find_stuck(evidence, [dead](const JudgedThread& thread) {
    return thread.sample->pid == dead->parent && call_of(thread.sample->call.number) == Call::kAccept;
  });
  if (accepts == nullptr) return std::nullopt;
  return Explanation{
      thread_text(*accepts) + " waits for a connection, which no process of the tree will make: " + end_text(*dead),
      {},
      true};
}

// The program has finished, and its exit waits.
std::optional<Explanation> exit_handler_waits(const Evidence& evidence) {
  const JudgedThread* main = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    return tid == thread.sample->pid && (evidence.is_in(tid, "/threading.py", "_shutdown") ||
                                         evidence.is_in(tid, "/multiprocessing/util.py", "_exit_function") ||
                                         evidence.is_in(tid, "/concurrent/futures/thread.py", "_python_exit") ||
                                         evidence.is_in(tid, "/concurrent/futures/process.py", "_python_exit") ||
                                         runs_handlers_of_atexit(evidence, tid));
  });
  if (main == nullptr) return std::nullopt;
  const JudgedThread* other = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (&thread == main || thread.sample->tid == main->sample->tid) return false;
    const auto frames = evidence.python.find(thread.sample->tid);
    return frames == evidence.python.end() || !is_library_helper(frames->second);
  });
  return Explanation{thread_text(*main) + " has come to its end, and waits at its exit for what does not end: " +
                         (other == nullptr ? main->wait.object : thread_text(*other)),
                     {},
                     true};
}

// A thread has called call_soon() of another thread's event loop, perhaps by set_result() of a future or set() of an
// event: the loop learns of it when something else wakes it up.
std::optional<Explanation> loop_not_woken(const Evidence& evidence) {
  std::size_t ready = 0;
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (!is_in_event_loop(evidence, thread)) return false;
    ready = callbacks_of_loop(evidence.snapshot->proc(), thread.sample->pid, thread.sample->tid).value_or(0);
    return ready != 0;
  });
  if (waits == nullptr) return std::nullopt;
  const auto named = name_call(evidence.python.at(waits->sample->tid));
  const std::string where = named ? " at " + named->file + ":" + std::to_string(named->line) : "";
  return Explanation{thread_text(*waits) + " waits in its event loop" + where + ", although " +
                     (ready == 1 ? "a callback is" : std::to_string(ready) + " callbacks are") +
                     " ready to run: another thread has set a future or an event, which does not wake the loop"};
}

// A thread waits for an event, a condition, a future of torch, or an item of a queue.
std::optional<Explanation> never_notified(const Evidence& evidence) {
  const auto is_own = [&](const JudgedThread* thread) {
    const auto frames = evidence.python.find(thread->sample->tid);
    return frames != evidence.python.end() && has_own_code(frames->second);
  };
  const auto waits_for_notice = [&](const JudgedThread* thread) {
    const auto frames = evidence.python.find(thread->sample->tid);
    if (asks_manager_to_wait(evidence, *thread)) return true;
    const bool in_loop = is_in_event_loop(evidence, *thread);
    const bool in_lock = thread->wait.kind == WaitKind::kFutex || thread->wait.kind == WaitKind::kSharedFutex;
    const bool of_counter = thread->wait.kind == WaitKind::kEventfd;
    if (!in_loop && !in_lock && !of_counter) return false;
    if (frames == evidence.python.end() || frames->second.empty() || helps_pool(frames->second)) return false;
    if (in_loop || of_counter) return true;
    const PythonFrame& inner = frames->second.front();
    const bool of_queue = thread->wait.of_sync && thread->wait.owner == 0;
    return of_queue || inner.function == "Condition.wait" || inner.function == "Event.wait" ||
           inner.file.ends_with("/queue.py") || inner.file.ends_with("/torch/futures/__init__.py");
  };
  const auto chain = chain_of(evidence);
  auto found = std::find_if(chain.begin(), chain.end(),
                            [&](const JudgedThread* thread) { return is_own(thread) && waits_for_notice(thread); });
  // Or a function of a library that the user has let a thread run: Thread(target=queue.get).
  if (found == chain.end()) found = std::find_if(chain.begin(), chain.end(), waits_for_notice);
  if (found == chain.end()) return std::nullopt;
  const JudgedThread* waits = *found;
  const auto named = name_call(evidence.python.at(waits->sample->tid));
  const std::string at = named && !named->call.empty() ? " waits in " + named->call : " waits";
  const std::string where = named ? " at " + named->file + ":" + std::to_string(named->line) : "";
  return Explanation{thread_text(*waits) + at + where +
                         " to be notified, and every thread that could do so waits itself, or has ended",
                     {},
                     true};
}

// The last rule: which processes could act, and why none does.
std::optional<Explanation> no_waker(const Evidence& evidence) {
  constexpr std::size_t kMostLinks = 4;
  std::string text;
  std::set<pid_t> seen;
  const JudgedThread* at = find_stuck(evidence, [](const JudgedThread& thread) { return !thread.wait.object.empty(); });
  while (at != nullptr && seen.size() < kMostLinks && seen.insert(at->sample->pid).second) {
    text += (text.empty() ? "" : "; ") + thread_text(*at) + " waits for " + at->wait.object;
    const auto next = std::find_if(at->wait.wakers.begin(), at->wait.wakers.end(),
                                   [&](const Waker& waker) { return seen.count(waker.pid) == 0; });
    if (next == at->wait.wakers.end()) {
      text += ", which only threads that wait themselves could end";
      break;
    }
    text +=
        ", which only " + std::to_string(next->pid) + (at->wait.wakers.size() > 1 ? " and others" : "") + " could end";
    const pid_t pid = next->pid;
    at = find_stuck(evidence, [pid](const JudgedThread& thread) {
      return thread.sample->pid == pid && !thread.wait.object.empty();
    });
  }
  const bool is_urgent = find_stuck(evidence, [&](const JudgedThread& thread) {
                           return thread.wait.urgent || asks_manager_for_lock(evidence, thread);
                         }) != nullptr;
  return Explanation{text.empty() ? "all threads that could act wait for each other" : text, {}, !is_urgent};
}

}  // namespace mprun
