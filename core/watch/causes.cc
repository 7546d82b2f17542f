#include "watch/causes.h"

#include <algorithm>

namespace mprun {
namespace {

using Rule = std::optional<HangCause> (*)(const Evidence&);

bool is_stuck(const Evidence& evidence, const JudgedThread& thread) {
  return evidence.judgement->stuck.count(thread.sample->pid) != 0 && thread.wait.kind != WaitKind::kEnded;
}

template <typename Matches>
const JudgedThread* find_stuck(const Evidence& evidence, const Matches& matches) {
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (is_stuck(evidence, thread) && matches(thread)) return &thread;
  }
  return nullptr;
}

std::string thread_text(const JudgedThread& thread) {
  return thread.sample->tid == thread.sample->pid
             ? "process " + std::to_string(thread.sample->pid)
             : "thread " + std::to_string(thread.sample->tid) + " of process " + std::to_string(thread.sample->pid);
}

// A forked child waits for a team of OpenMP threads that fork() did not take along.
std::optional<HangCause> openmp_after_fork(const Evidence& evidence) {
  const auto in_libgomp = [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kFutex && evidence.code_file(thread).find("libgomp") != std::string::npos;
  };
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const World::Process* process = evidence.world->process(thread.sample->pid);
    return process->forked && process->threads.size() == 1 && in_libgomp(thread);
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{
      "openmp-after-fork",
      thread_text(*waits) +
          " was forked from a process that had used OpenMP (libgomp): it waits for threads that exist in its "
          "parent only",
      "leave mprun's libgomp adapter on, or start workers by \"spawn\" instead of fork: "
      "multiprocessing.set_start_method(\"spawn\")"};
}

// Threads that wait for mutexes of each other, or one for its own.
std::optional<HangCause> lock_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> owner;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (is_stuck(evidence, thread) && thread.wait.owner != 0) owner[thread.sample->tid] = thread.wait.owner;
  }
  for (const auto& [start, first] : owner) {
    std::string chain = std::to_string(start);
    pid_t at = first;
    for (std::size_t step = 0; step < owner.size() && at != start; ++step) {
      const auto next = owner.find(at);
      if (next == owner.end()) break;
      chain += " for " + std::to_string(at);
      at = next->second;
    }
    if (at != start) continue;
    if (first == start) {
      return HangCause{"lock-cycle", "thread " + chain + " waits for a mutex that it has locked itself",
                       "make the mutex recursive, or do not lock it twice"};
    }
    return HangCause{"lock-cycle", "threads wait for each other's locks: " + chain + " for " + std::to_string(start),
                     "take the locks in the same order everywhere"};
  }
  return std::nullopt;
}

// A mutex that was locked by a thread of the parent when the child was forked.
std::optional<HangCause> mutex_held_at_fork(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const World::Process* process = evidence.world->process(thread.sample->pid);
    const auto& threads = process->threads;
    return process->forked && thread.wait.kind == WaitKind::kMutex &&
           std::find(threads.begin(), threads.end(), thread.wait.owner) == threads.end();
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"lock-held-at-fork",
                   thread_text(*waits) + " waits for a mutex that thread " + std::to_string(waits->wait.owner) +
                       " of its parent held at fork(): no thread here can unlock it",
                   "fork before other threads start, or start the process by spawn or exec"};
}

// Somebody waits for the end of a process that cannot end, because it writes into a full pipe that only they could
// read.
std::optional<HangCause> queue_not_drained(const Evidence& evidence) {
  const JudgedThread* writer = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (thread.wait.kind != WaitKind::kPipeWrite) return false;
    return find_stuck(evidence, [&](const JudgedThread& other) {
             const auto& readers = thread.wait.wakers;
             const auto is = [&](const std::vector<Waker>& wakers, pid_t pid) {
               return std::any_of(wakers.begin(), wakers.end(), [pid](const Waker& waker) { return waker.pid == pid; });
             };
             return other.sample->pid != thread.sample->pid && is(readers, other.sample->pid) &&
                    is(other.wait.wakers, thread.sample->pid) &&
                    (other.wait.kind == WaitKind::kChild || other.wait.kind == WaitKind::kPoll);
           }) != nullptr;
  });
  if (writer == nullptr) return std::nullopt;
  return HangCause{"queue-not-drained",
                   thread_text(*writer) + " cannot end before its output (" + writer->wait.object +
                       ") is read, and the one who could read it waits for its end",
                   "get all results before you join: queue.get() first, then process.join()"};
}

// A reader waits for the end of a pipe whose writing end it has open itself.
std::optional<HangCause> pipe_never_closed(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& writers = thread.wait.wakers;
    return thread.wait.kind == WaitKind::kPipeRead && writers.size() == 1 && writers[0].pid == thread.sample->pid;
  });
  if (reader == nullptr) return std::nullopt;
  return HangCause{"pipe-never-closed",
                   thread_text(*reader) + " reads " + reader->wait.object +
                       " to its end, which never comes: nobody but itself has the writing end open",
                   "close the writing end in the process that reads"};
}

std::optional<HangCause> barrier_short(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.is_in(thread.sample->tid, "/threading.py", "Barrier.wait");
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"barrier-short", thread_text(*waits) + " waits at a barrier that not all parties reach",
                   "give the barrier as many parties as will wait at it, or wait(timeout=...)"};
}

constexpr Rule kRules[] = {openmp_after_fork, lock_cycle,        mutex_held_at_fork,
                           queue_not_drained, pipe_never_closed, barrier_short};

}  // namespace

std::string Evidence::code_file(const JudgedThread& thread) const {
  const Mapping* mapping = find_mapping(world->maps(thread.sample->pid), thread.sample->call.program_counter);
  return mapping == nullptr ? "" : mapping->path;
}

bool Evidence::is_in(pid_t tid, std::string_view file, std::string_view function) const {
  const auto it = python.find(tid);
  if (it == python.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(), [&](const PythonFrame& frame) {
    return frame.function == function && frame.file.size() >= file.size() &&
           frame.file.compare(frame.file.size() - file.size(), file.size(), file) == 0;
  });
}

bool is_violent(const RecordedDeath& death) {
  return death.end_known && (death.end.signal != 0 || death.end.exit_code != 0);
}

HangCause find_cause(const Evidence& evidence) {
  for (const Rule rule : kRules) {
    if (auto cause = rule(evidence)) return std::move(*cause);
  }
  HangCause unknown;
  unknown.explanation = "what each thread waits for is told above; none of the known causes fits";
  return unknown;
}

}  // namespace mprun
