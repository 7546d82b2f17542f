#include "watch/causes.h"

#include <algorithm>

#include "watch/cause_rules.h"
#include "watch/joins.h"
#include "watch/library_waits.h"

namespace mprun {
std::string thread_text(const JudgedThread& thread) {
  return thread.sample->tid == thread.sample->pid
             ? "process " + std::to_string(thread.sample->pid)
             : "thread " + std::to_string(thread.sample->tid) + " of process " + std::to_string(thread.sample->pid);
}

namespace {

using Rule = std::optional<HangCause> (*)(const Evidence&);

// "10 for 11 for 10".
std::string cycle_text(const std::vector<pid_t>& cycle) {
  std::string text;
  for (const pid_t id : cycle) text += std::to_string(id) + " for ";
  return text + std::to_string(cycle.front());
}

// Threads that wait for mutexes of each other, or one for its own.
std::optional<HangCause> lock_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> owner;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (is_stuck(evidence, thread) && thread.wait.owner != 0) owner[thread.sample->tid] = thread.wait.owner;
  }
  const auto cycle = find_cycle(owner);
  if (cycle.empty()) return std::nullopt;
  if (cycle.size() == 1) {
    return HangCause{"lock-cycle",
                     "thread " + std::to_string(cycle[0]) + " waits for a mutex that it has locked itself",
                     "make the mutex recursive, or do not lock it twice"};
  }
  HangCause cause = cause_of_lock_cycle(cycle);
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!thread.wait.of_sync || std::find(cycle.begin(), cycle.end(), thread.sample->tid) == cycle.end()) continue;
    cause.explanation += "; " + thread_text(thread) + " waits for the " + thread.wait.object;
  }
  return cause;
}

// Whether `thread` waits for the process, perhaps over others that wait for an end or a lock.
bool waits_for_process(const Evidence& evidence, const JudgedThread& thread, pid_t pid) {
  std::set<pid_t> reached;
  std::vector<const JudgedThread*> at{&thread};
  while (!at.empty()) {
    const JudgedThread& next = *at.back();
    at.pop_back();
    for (const Waker& waker : next.wait.wakers) {
      if (waker.pid == pid) return true;
      if (waker.pid == thread.sample->pid || !reached.insert(waker.pid).second) continue;
      for (const JudgedThread& other : evidence.judgement->threads) {
        const bool talks = waits_to_read(evidence, other) || waits_to_write(evidence, other);
        if (other.sample->pid == waker.pid && is_stuck(evidence, other) && !talks) at.push_back(&other);
      }
    }
  }
  return false;
}

// Somebody waits for the end of a process that cannot end, because it writes into a full pipe that only they could
// read.
std::optional<HangCause> queue_not_drained(const Evidence& evidence) {
  const JudgedThread* writer = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (!waits_to_write(evidence, thread)) return false;
    return find_stuck(evidence, [&](const JudgedThread& other) {
             const auto& readers = thread.wait.wakers;
             const auto is = [&](const std::vector<Waker>& wakers, pid_t pid) {
               return std::any_of(wakers.begin(), wakers.end(), [pid](const Waker& waker) { return waker.pid == pid; });
             };
             return other.sample->pid != thread.sample->pid && is(readers, other.sample->pid) &&
                    has_open_too(evidence, thread, other.sample->pid) &&
                    (other.wait.kind == WaitKind::kChild || other.wait.kind == WaitKind::kPoll) &&
                    waits_for_process(evidence, other, thread.sample->pid);
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

// Everybody in a Python waits for a thread that is blocked in C and did not let go of the GIL.
std::optional<HangCause> gil_held(const Evidence& evidence) {
  const JudgedThread* waits =
      find_stuck(evidence, [](const JudgedThread& thread) { return thread.wait.kind == WaitKind::kGil; });
  if (waits == nullptr) return std::nullopt;
  const pid_t holder = waits->wait.wakers.front().tid;
  const JudgedThread* holds =
      find_stuck(evidence, [holder](const JudgedThread& thread) { return thread.sample->tid == holder; });
  if (holds == nullptr) return std::nullopt;
  const auto frames = evidence.python.find(holder);
  const std::string where =
      frames == evidence.python.end() || frames->second.empty()
          ? ""
          : ", called at " + frames->second.front().file + ":" + std::to_string(frames->second.front().line);
  return HangCause{"gil-held",
                   "thread " + std::to_string(holder) + " of process " + std::to_string(holds->sample->pid) +
                       " holds the GIL and is blocked in C code (" + to_string(holds->wait.kind) + where +
                       "); all other Python threads wait for it",
                   "release the GIL around the call (Py_BEGIN_ALLOW_THREADS; ctypes.CDLL instead of PyDLL)"};
}

std::optional<HangCause> barrier_short(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.is_in(thread.sample->tid, "/threading.py", "Barrier.wait") ||
           evidence.is_in(thread.sample->tid, "/mprun/sync.py", "Barrier.wait");
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"barrier-short", thread_text(*waits) + " waits at a barrier that not all parties reach",
                   "give the barrier as many parties as will wait at it, or wait(timeout=...)"};
}

// A process waits for a lock of a file that another open file of its own has.
std::optional<HangCause> own_file_lock(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t pid = thread.sample->pid;
    const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
    const Descriptor* file = evidence.world->descriptor(pid, number);
    if (thread.wait.kind != WaitKind::kFileLock || file == nullptr || file->info_inode == 0) return false;
    const auto& holders = thread.wait.wakers;
    if (std::find(holders.begin(), holders.end(), Waker{pid, 0}) == holders.end()) return false;
    const auto& own = evidence.world->process(pid)->descriptors;
    return std::any_of(own.begin(), own.end(), [&](const Descriptor& other) {
      return other.number != number && other.info_inode == file->info_inode && !other.locks.empty();
    });
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"lock-cycle",
                   thread_text(*waits) + " waits for a lock of a file that it has locked itself, by another descriptor",
                   "open and lock the file once, or let go of the first lock before"};
}

// flock() and fcntl() locks, by process.
std::optional<HangCause> file_lock_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> holder;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || thread.wait.kind != WaitKind::kFileLock || thread.wait.wakers.empty()) continue;
    const pid_t first = thread.wait.wakers.front().pid;
    if (first != thread.sample->pid) holder[thread.sample->pid] = first;
  }
  const auto cycle = find_cycle(holder);
  if (cycle.empty()) return std::nullopt;
  return HangCause{"lock-cycle", "processes wait for each other's file locks: " + cycle_text(cycle),
                   "take the locks in the same order everywhere"};
}

std::string end_text(const RecordedDeath& death) {
  return "process " + std::to_string(death.pid) + " ended with " + to_string(death.end);
}

// The last forked child of a process that is stuck that did not come to a good end, if the stuck wait for what it owed
// them: tasks of a pool, or a lock in shared memory, which has no owner that the kernel knows.
std::optional<HangCause> worker_died(const Evidence& evidence) {
  const RecordedDeath* dead = nullptr;
  for (const RecordedDeath& death : evidence.family->deaths()) {
    if (death.forked && is_violent(death) && evidence.judgement->stuck.count(death.parent) != 0) dead = &death;
  }
  if (dead == nullptr) return std::nullopt;
  const bool of_pool =
      find_stuck(evidence, [&](const JudgedThread& thread) {
        return thread.sample->pid == dead->parent && evidence.is_in(thread.sample->tid, "/multiprocessing/pool.py", "");
      }) != nullptr;
  const JudgedThread* locked = find_stuck(evidence, [](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSharedFutex && !thread.wait.of_sync;
  });
  if (of_pool) {
    return HangCause{"worker-died",
                     "a worker of the pool died: " + end_text(*dead) +
                         "; its task is lost, and the pool waits for the result for ever",
                     "find out why it died; concurrent.futures.ProcessPoolExecutor fails instead of waiting, and a job "
                     "of mprun tries the task again"};
  }
  const JudgedThread* manages = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.sample->pid == dead->parent && evidence.is_in(thread.sample->tid, "/concurrent/futures/process.py",
                                                                "_ExecutorManagerThread.join_executor_internals");
  });
  if (manages != nullptr) {
    const auto& deaths = evidence.family->deaths();  // the first: the executor has ended the others
    const auto first = std::find_if(deaths.begin(), deaths.end(), [&](const RecordedDeath& death) {
      return death.forked && is_violent(death) && death.parent == dead->parent;
    });
    return HangCause{"worker-died",
                     "a worker of the executor died: " + end_text(*first) +
                         "; the executor waits for a thread that still writes a task which no worker reads",
                     "find out why it died; give tasks little data, or Python 3.12, which closes that pipe"};
  }
  const JudgedThread* asks = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.is_in(thread.sample->tid, "/multiprocessing/managers.py", "AcquirerProxy.acquire") ||
           evidence.is_in(thread.sample->tid, "/multiprocessing/managers.py", "AcquirerProxy.__enter__");
  });
  if (asks != nullptr) {
    return HangCause{
        "worker-died",
        thread_text(*asks) + " waits for a lock of a manager that nobody alive will free: " + end_text(*dead),
        "find out why it died; a manager keeps a lock that its holder has not released"};
  }
  if (locked == nullptr) return std::nullopt;
  return HangCause{
      "worker-died",
      thread_text(*locked) + " waits for a lock in shared memory that nobody alive will free: " + end_text(*dead),
      "find out why it died; do not kill a process that may hold a lock or use a queue"};
}

// "10", "10 and 20", "10, 20 and 2 more".
std::string threads_text(const std::vector<pid_t>& threads) {
  std::string text = std::to_string(threads.front());
  if (threads.size() == 2) return text + " and " + std::to_string(threads[1]);
  if (threads.size() > 2)
    text += ", " + std::to_string(threads[1]) + " and " + std::to_string(threads.size() - 2) + " more";
  return text;
}

// Code of libraries waits for much that is made of a semaphore, and seldom for a lock that was forgotten.
bool is_own_code(const std::vector<PythonFrame>& frames) {
  return !frames.empty() && !is_library_file(frames.front().file);
}

// Threads wait for locks of Python, which do not say who has them; nobody is left in their process who could free one.
std::optional<HangCause> python_lock_cycle(const Evidence& evidence) {
  const auto waits_here = [&](const JudgedThread& thread) {
    const auto frames = evidence.python.find(thread.sample->tid);
    const ForkRecord* fork = evidence.family->fork_of(thread.sample->pid);
    const bool may_have_lost_others =
        evidence.world->process(thread.sample->pid)->forked && (fork == nullptr || fork->threads > 1);
    return thread.wait.kind == WaitKind::kFutex && thread.wait.semaphore && !may_have_lost_others &&
           frames != evidence.python.end() && is_own_code(frames->second);
  };
  const JudgedThread* first = find_stuck(evidence, waits_here);
  if (first == nullptr) return std::nullopt;
  const pid_t pid = first->sample->pid;
  if (evidence.world->process(pid)->threads.size() == 1) {
    return HangCause{"lock-cycle",
                     thread_text(*first) +
                         " waits for a lock that nobody else can free, since it has no other thread: it has locked it "
                         "before, or a thread that has ended did",
                     "do not lock it twice (a threading.RLock may be), and free it in any case: `with lock:`"};
  }
  std::vector<pid_t> waiting;
  find_stuck(evidence, [&](const JudgedThread& thread) {
    if (thread.sample->pid == pid && waits_here(thread)) waiting.push_back(thread.sample->tid);
    return false;
  });
  return HangCause{
      "lock-cycle",
      std::string(waiting.size() == 1 ? "thread " : "threads ") + threads_text(waiting) + " of process " +
          std::to_string(pid) + (waiting.size() == 1 ? " waits for a lock" : " wait for locks") +
          " that only threads of that process could free, and all of those wait themselves",
      "take locks in the same order everywhere, and wait for no thread while you hold a lock that it needs"};
}

// A thread imports a module, and waits meanwhile for another, which needs that module.
std::optional<HangCause> import_cycle(const Evidence& evidence) {
  constexpr std::string_view kImports = "importlib._bootstrap>";
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kFutex && evidence.is_in(thread.sample->tid, kImports, "_ModuleLock.acquire");
  });
  if (waits == nullptr) return std::nullopt;
  const JudgedThread* imports = find_stuck(evidence, [&](const JudgedThread& thread) {
    return &thread != waits && thread.sample->pid == waits->sample->pid &&
           evidence.is_in(thread.sample->tid, kImports, "_load_unlocked");
  });
  if (imports == nullptr) return std::nullopt;
  return HangCause{"lock-cycle",
                   thread_text(*waits) + " waits until a module is imported, which thread " +
                       std::to_string(imports->sample->tid) + " does, and that one waits too",
                   "start no thread that is waited for while a module is imported: do it in a function that is called "
                   "later"};
}

// In this order: what is known for certain before what may follow from it.
constexpr Rule kRules[] = {
    stopped_for_ever,    openmp_after_fork, lock_cycle,          own_file_lock,          file_lock_cycle,
    mutex_held_at_fork,  gil_held,          worker_died,         thread_lost_at_fork,    lock_held_at_fork,
    left_behind_at_fork, pool_helper_lost,  collective_mismatch, store_key_missing,      message_never_sent,
    fifo_not_opened,     queue_not_drained, child_signal_missed, pipe_never_closed,      barrier_short,
    python_lock_cycle,   import_cycle,      mutex_owner_ended,   task_waits_in_own_pool, pipe_kept_by_grandchild,
    input_never_closed,  shared_lock_cycle, exit_handler_waits,  never_notified,         pipe_cycle};

}  // namespace

std::vector<pid_t> find_cycle(const std::map<pid_t, pid_t>& waits_for) {
  for (const auto& [start, first] : waits_for) {
    std::vector<pid_t> cycle{start};
    pid_t at = first;
    // Who only waits for a circle is not of it, and would go round for ever.
    while (at != start && cycle.size() < waits_for.size()) {
      const auto next = waits_for.find(at);
      if (next == waits_for.end()) break;
      cycle.push_back(at);
      at = next->second;
    }
    if (at == start) return cycle;
  }
  return {};
}

HangCause cause_of_lock_cycle(const std::vector<pid_t>& threads) {
  return {"lock-cycle", "threads wait for each other's locks: " + cycle_text(threads),
          "take the locks in the same order everywhere"};
}

std::string Evidence::code_file(const JudgedThread& thread) const {
  const Mapping* mapping = find_mapping(world->maps(thread.sample->pid), thread.sample->call.program_counter);
  return mapping == nullptr ? "" : mapping->path;
}

bool Evidence::is_in(pid_t tid, std::string_view file, std::string_view function) const {
  const auto it = python.find(tid);
  if (it == python.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(), [&](const PythonFrame& frame) {
    return (function.empty() || frame.function == function) && frame.file.ends_with(file);
  });
}

HangCause find_cause(const Evidence& evidence) {
  for (const Rule rule : kRules) {
    if (auto cause = rule(evidence)) return std::move(*cause);
  }
  return no_waker(evidence);
}

}  // namespace mprun
