// What a forked child lacks: threads, and the owners of the locks that it has copied. Rules of the table.
#include <linux/futex.h>

#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/judge/library_waits.h"

namespace mprun {
namespace {

// The thread is alone, not counting those that libraries have started to help, and that hold nothing.
bool is_alone(const Evidence& evidence, const TreeSnapshot::Process& process, pid_t tid) {
  return std::all_of(process.threads.begin(), process.threads.end(), [&](pid_t other) {
    const auto frames = evidence.python.find(other);
    return other == tid || (frames != evidence.python.end() && is_library_helper(frames->second));
  });
}

// Waits for a notification, not for a lock that was taken.
bool waits_for_notice(const JudgedThread& thread, const std::vector<PythonFrame>& frames) {
  const auto is_notice = [](const PythonFrame& frame) {
    // A wait for a lock is never in a selector.
    if (!frame.file.ends_with("/threading.py")) {
      return frame.file.ends_with("/queue.py") || frame.file.ends_with("/selectors.py") ||
             frame.file.ends_with("/gevent/hub.py");
    }
    return frame.function == "Condition.wait" || frame.function == "Thread._wait_for_tstate_lock";
  };
  // Locks of Python are semaphores; other such waits in C are for condition variables, as in torch's inter-op threads.
  const bool is_condition = thread.wait.kind == WaitKind::kFutex && !thread.wait.semaphore &&
                            (thread.sample->call.arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  return is_condition || is_notice(frames.front());
}

// The only thread of a forked child, if it waits for its own process and the fork did not copy other threads.
const JudgedThread* find_lonely(const Evidence& evidence, bool for_lock) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    const ForkRecord* fork = evidence.history->fork_of(thread.sample->pid);
    const auto frames = evidence.python.find(thread.sample->tid);
    const bool is_own_wait =
        thread.wait.kind == WaitKind::kFutex || is_in_event_loop(evidence, thread) || is_idle_libev(*thread.sample);
    return is_own_wait && process->forked && fork != nullptr && fork->threads > 1 && frames != evidence.python.end() &&
           is_alone(evidence, *process, thread.sample->tid) && !is_library_helper(frames->second) &&
           (is_in_event_loop(evidence, thread) || waits_for_notice(thread, frames->second)) != for_lock;
  });
}

// The same for a program that is not Python.
const JudgedThread* find_left_behind(const Evidence& evidence) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    const ForkRecord* fork = evidence.history->fork_of(thread.sample->pid);
    const bool is_own_wait = thread.wait.kind == WaitKind::kFutex || is_idle_libev(*thread.sample);
    return is_own_wait && process->forked && process->threads.size() == 1 && fork != nullptr && fork->threads > 1 &&
           evidence.python.count(thread.sample->tid) == 0;
  });
}

// glibc and libstdc++ use FUTEX_WAIT_BITSET in pthread_cond_wait and sem_wait, and FUTEX_WAIT for everything else.
bool waits_for_notice(const JudgedThread& thread) {
  return thread.wait.kind != WaitKind::kFutex ||
         (thread.sample->call.arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

std::string origin_text(const Evidence& evidence, const JudgedThread& thread) {
  return ": it was forked from a process with " +
         std::to_string(evidence.history->fork_of(thread.sample->pid)->threads) +
         " threads, and fork() takes along only the one that calls it";
}

}  // namespace

// libgomp makes the call itself on x86-64, and by syscall() of libc elsewhere.
bool waits_in_libgomp(const Evidence& evidence, const JudgedThread& thread) {
  constexpr std::string_view kLibrary = "libgomp";
  if (thread.wait.kind != WaitKind::kFutex) return false;
  const auto native = evidence.native.find(thread.sample->tid);
  const bool by_libc = native != evidence.native.end() && native->second.size() >= 2 &&
                       native->second[0].starts_with("syscall (libc") &&
                       native->second[1].find(kLibrary) != std::string::npos;
  return by_libc || evidence.code_file(thread).find(kLibrary) != std::string::npos;
}

// A forked child waits for a team of OpenMP threads that fork() did not take along.
std::optional<Explanation> openmp_after_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    return process->forked && process->threads.size() == 1 && waits_in_libgomp(evidence, thread);
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{
      thread_text(*waits) +
      " was forked from a process that had used OpenMP (libgomp): it waits for threads that exist in its "
      "parent only"};
}

// A mutex that was locked by a thread of the parent when the child was forked. Later threads have higher numbers.
std::optional<Explanation> mutex_held_at_fork(const Evidence& evidence) {
  const auto has_thread = [](const TreeSnapshot::Process* process, pid_t tid) {
    return process != nullptr &&
           std::find(process->threads.begin(), process->threads.end(), tid) != process->threads.end();
  };
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    const pid_t owner = thread.wait.owner;
    return process->forked && thread.wait.kind == WaitKind::kMutex && !has_thread(process, owner) &&
           (owner < process->pid || has_thread(evidence.snapshot->process(process->parent), owner));
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for a mutex that thread " + std::to_string(waits->wait.owner) +
                     " of its parent held at fork(): no thread here can unlock it"};
}

std::optional<Explanation> thread_lost_at_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_lonely(evidence, false);
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for another thread and has none" + origin_text(evidence, *waits)};
}

std::optional<Explanation> grpc_left_behind(const Evidence& evidence) {
  const JudgedThread* waits =
      find_thread(evidence, [&](const JudgedThread& thread) { return thread.sample->tid == evidence.lost_poller; });
  if (waits == nullptr || !evidence.snapshot->process(waits->sample->pid)->forked) return std::nullopt;
  const bool is_known = evidence.history->fork_of(waits->sample->pid) != nullptr;
  return Explanation{thread_text(*waits) + " waits for an answer by gRPC, and no thread of it listens to the network" +
                     (is_known ? origin_text(evidence, *waits) : "")};
}

std::optional<Explanation> thread_left_behind_at_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_left_behind(evidence);
  if (waits == nullptr || !waits_for_notice(*waits)) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for another thread to notify it and has none" +
                     origin_text(evidence, *waits)};
}

std::optional<Explanation> lock_left_behind_at_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_left_behind(evidence);
  if (waits == nullptr || waits_for_notice(*waits)) return std::nullopt;
  return Explanation{thread_text(*waits) +
                     " waits for what another thread was busy with at fork(): a lock, a static variable that it was "
                     "initialising, a condition variable that it waited for (unless this thread has locked it "
                     "twice)" +
                     origin_text(evidence, *waits)};
}

std::optional<Explanation> lock_held_at_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_lonely(evidence, true);
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) +
                     " waits for a lock that no thread here can free: it was forked from a process with other "
                     "threads, one of which held the lock at that time, unless this thread has locked it twice"};
}

// A worker that is forked while a function holds a lock inherits the lock, locked, and has the frames of that function
// below its own.
std::optional<Explanation> lock_held_by_forker(const Evidence& evidence) {
  const PythonFrame* function = nullptr;
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(thread.sample->pid);
    const auto stack = evidence.python.find(thread.sample->tid);
    if (!process->forked || thread.wait.kind != WaitKind::kFutex || !thread.wait.semaphore) return false;
    if (stack == evidence.python.end() || stack->second.empty()) return false;
    const std::vector<PythonFrame>& frames = stack->second;
    function = &frames.front();
    const auto inherited = frames.begin() + static_cast<std::ptrdiff_t>(own_frames(frames).size());
    return std::any_of(inherited, frames.end(), [&](const PythonFrame& frame) {
      return frame.function == function->function && frame.file == function->file;
    });
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for a lock in " + function->function +
                     ", which its parent was running when it forked this process: its copy of the lock stays locked"};
}

}  // namespace mprun
