// Causes that follow from the wait-for graph: rules of the table.
#include <algorithm>
#include <array>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"
#include "watch/judge/library_waits.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/python_code.h"
#include "watch/stalls/lost_result.h"

namespace mprun {
namespace {

constexpr std::string_view kManagers = "/multiprocessing/managers.py";
constexpr std::string_view kPool = "/multiprocessing/pool.py";

bool has_thread_in(const Evidence& evidence, const TreeSnapshot::Process& process, std::string_view file,
                   std::string_view function) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [&](pid_t tid) { return evidence.is_in(tid, file, function); });
}

// The chain from the user to the hang: the main thread of the outermost stuck process, what it waits for, and so on. A
// wait for another process leads to its main thread, one for the own process to all its other threads.
std::vector<const JudgedThread*> chain_of(const Evidence& evidence) {
  std::vector<const JudgedThread*> chain;
  const auto add_threads_of = [&](pid_t pid, bool all) {
    for (const JudgedThread& thread : evidence.judgement->threads) {
      if (thread.sample->pid != pid || (!all && thread.sample->tid != pid) || !is_stuck(evidence, thread)) continue;
      if (std::find(chain.begin(), chain.end(), &thread) == chain.end()) chain.push_back(&thread);
    }
  };
  if (const JudgedThread* first = find_stuck(evidence, [](const JudgedThread&) { return true; })) {
    add_threads_of(first->sample->pid, false);
  }
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const JudgedThread& thread = *chain[i];
    for (const Waker& waker : thread.wait.wakers) add_threads_of(waker.pid, waker.pid == thread.sample->pid);
  }
  return chain;
}

// In a forked child, only what it has called since the fork counts.
bool has_own_code(const std::vector<PythonFrame>& frames) {
  for (const PythonFrame& frame : frames) {
    if (!is_library_file(frame.file)) return true;
    if (frame.function == "Popen._launch") return false;
  }
  return false;
}

// A thread that a pool or an executor has started, with no task of the user's.
bool helps_pool(const std::vector<PythonFrame>& frames) {
  if (has_own_code(frames)) return false;
  return is_library_helper(frames) || std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
           return frame.file.ends_with(kPool) || frame.file.find("/concurrent/futures/") != std::string::npos;
         });
}

std::string end_text(const RecordedDeath& death) {
  return "process " + std::to_string(death.pid) + " ended with " + to_string(death.end);
}

bool asks_manager_for_lock(const Evidence& evidence, const JudgedThread& thread) {
  return evidence.is_in(thread.sample->tid, kManagers, "AcquirerProxy.acquire") ||
         evidence.is_in(thread.sample->tid, kManagers, "AcquirerProxy.__enter__");
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

// The last forked child of a stuck process that ended badly: stuck threads may wait for what it owed them.
const RecordedDeath* find_dead_worker(const Evidence& evidence) {
  const RecordedDeath* dead = nullptr;
  for (const RecordedDeath& death : evidence.history->deaths()) {
    if (death.forked && is_violent(death) && evidence.judgement->stuck.count(death.parent) != 0) dead = &death;
  }
  return dead;
}

// Queues and pools of multiprocessing and of packages made after it take semaphores that are no locks of the user's.
bool takes_shared_lock(const PythonFrame& frame) {
  constexpr std::array<std::string_view, 3> kQueueing = {"/multiprocessing/", "/loky/", "/billiard/"};
  return frame.function == "SemLock.__enter__" || !is_library_file(frame.file) ||
         std::none_of(kQueueing.begin(), kQueueing.end(),
                      [&](std::string_view folder) { return frame.file.find(folder) != std::string::npos; });
}

// Locks that processes share do not record who holds them, nor does the watch know what was before it began.
std::string or_holder_has_ended(const Evidence& evidence) {
  const auto& deaths = evidence.history->deaths();
  const bool may_have_ended =
      !evidence.history->has_members() || std::any_of(deaths.begin(), deaths.end(), [&](const RecordedDeath& death) {
        return evidence.judgement->stuck.count(death.parent) != 0;
      });
  return may_have_ended ? ", or a process that had it has ended" : "";
}

bool is_parent_in(const Evidence& evidence, const RecordedDeath& dead, std::string_view file,
                  std::string_view function) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
           return thread.sample->pid == dead.parent && evidence.is_in(thread.sample->tid, file, function);
         }) != nullptr;
}

std::string lost_task_text(const RecordedDeath& death) {
  return "a worker of the pool died: " + end_text(death) +
         "; its task is lost, or the lock with which it took tasks, and the pool waits for the result for ever";
}

// It runs a task of a multiprocessing.Pool that waits for something.
bool waits_in_task_of_pool(const Evidence& evidence, const JudgedThread& thread) {
  const auto frames = evidence.python.find(thread.sample->tid);
  return evidence.is_in(thread.sample->tid, kPool, "worker") && has_own_code(frames->second);
}

// The same of an executor of concurrent.futures, of threads or of processes.
bool runs_task_of_executor(const Evidence& evidence, const JudgedThread& thread) {
  const pid_t tid = thread.sample->tid;
  return evidence.is_in(tid, "/concurrent/futures/thread.py", "_WorkItem.run") ||
         (evidence.is_in(tid, "/concurrent/futures/process.py", "_process_worker") &&
          has_own_code(evidence.python.at(tid)));
}

// Only one worker at a time reads from their queue, or polls it with a limit of time; the others wait for their turn.
bool waits_for_turn_to_read(const Evidence& evidence, const JudgedThread& thread) {
  const auto gets = [&](const JudgedThread& one) {
    return evidence.is_in(one.sample->tid, "/multiprocessing/queues.py", "SimpleQueue.get") ||
           evidence.is_in(one.sample->tid, "/multiprocessing/queues.py", "Queue.get");
  };
  return gets(thread) && find_stuck(evidence, [&](const JudgedThread& other) {
                           const WaitKind kind = other.wait.kind;
                           return other.sample->pid != thread.sample->pid && gets(other) &&
                                  (kind == WaitKind::kPipeRead || kind == WaitKind::kPoll);
                         }) != nullptr;
}

// The thread that takes the results of a multiprocessing.Pool, and runs its callbacks, waits for another result.
// With a second pool, it could be that one's.
bool waits_in_pool_callback(const Evidence& evidence, pid_t tid) {
  const auto takes_results = [&](const auto& thread) {
    return evidence.is_in(thread.first, kPool, "Pool._handle_results");
  };
  if (std::count_if(evidence.python.begin(), evidence.python.end(), takes_results) != 1) return false;
  return evidence.is_in(tid, kPool, "Pool._handle_results") && evidence.is_in(tid, kPool, "ApplyResult.wait");
}

std::string waiting_task_text(const JudgedThread& waits) {
  return thread_text(waits) +
         " runs a task of a pool, or the callback of one, and waits in it for another task, which waits for that "
         "thread";
}

// A process without Python, and one that is too much to be described, count as not read.
PythonStacks stacks_of(const Evidence& evidence, pid_t pid) {
  PythonStacks stacks;
  const TreeSnapshot::Process* process = evidence.snapshot->process(pid);
  if (process == nullptr) return stacks;
  for (const pid_t tid : process->threads) {
    if (const auto frames = evidence.python.find(tid); frames != evidence.python.end()) {
      stacks.threads.push_back({tid, frames->second, true, {}});
    }
  }
  if (stacks.threads.empty()) stacks.threads.push_back({pid, {}, false, {}});
  return stacks;
}

Explanation lost_helper_of(pid_t pid) {
  return {"the thread of process " + std::to_string(pid) +
          " that took the pool's results has ended, most likely because one could not be unpickled, or a callback "
          "raised (a traceback above says what)"};
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

// The pool waits for the result of the worker that died, unless it was one of an earlier pool, as terminate() ends
// them, or a worker that lives has not finished its task.
std::optional<Explanation> pool_worker_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr || dead->was_asked_to || !is_parent_in(evidence, *dead, kPool, "")) return std::nullopt;
  const JudgedThread* works = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.snapshot->process(thread.sample->pid)->parent == dead->parent &&
           waits_in_task_of_pool(evidence, thread);
  });
  if (works != nullptr) return std::nullopt;
  return Explanation{lost_task_text(*dead)};
}

std::optional<Explanation> executor_worker_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr || !is_parent_in(evidence, *dead, "/concurrent/futures/process.py",
                                       "_ExecutorManagerThread.join_executor_internals")) {
    return std::nullopt;
  }
  const auto& deaths = evidence.history->deaths();  // the first one: the executor has ended the others
  const auto first = std::find_if(deaths.begin(), deaths.end(), [&](const RecordedDeath& death) {
    return death.forked && is_violent(death) && death.parent == dead->parent;
  });
  return Explanation{"a worker of the executor died: " + end_text(*first) +
                     "; the executor waits for a thread that still writes a task which no worker reads"};
}

std::optional<Explanation> manager_lock_owner_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  const JudgedThread* asks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return asks_manager_for_lock(evidence, thread); });
  if (dead == nullptr || asks == nullptr) return std::nullopt;
  return Explanation{thread_text(*asks) +
                     " waits for a lock of a manager, and every process that could release it waits itself or has "
                     "ended: " +
                     end_text(*dead) + ", and may have had it"};
}

// A semaphore of System V has no owner either, but the kernel knows which process changed it last.
std::optional<Explanation> semaphore_user_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr) return std::nullopt;
  const JudgedThread* down = find_stuck(evidence, [dead](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSemaphore && thread.wait.last_user == dead->pid;
  });
  if (down == nullptr) return std::nullopt;
  return Explanation{thread_text(*down) + " waits for " + down->wait.object +
                     ", which no living process will free: the last one to change it died: " + end_text(*dead)};
}

// A lock in shared memory has no owner that the kernel knows.
std::optional<Explanation> lock_owner_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  const JudgedThread* locked = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSharedFutex && !thread.wait.of_sync &&
           !waits_for_turn_to_read(evidence, thread);
  });
  if (dead == nullptr || locked == nullptr) return std::nullopt;
  return Explanation{thread_text(*locked) +
                     " waits for a lock in shared memory, and every process that could release it waits itself or has "
                     "ended: " +
                     end_text(*dead) + ", and may have had it"};
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

// No thread is left that could take the results of a pool.
std::optional<Explanation> pool_helper_lost(const Evidence& evidence) {
  for (const pid_t pid : evidence.judgement->stuck) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(pid);
    if (process == nullptr || !has_thread_in(evidence, *process, kPool, "Pool._handle_workers")) continue;
    if (!has_thread_in(evidence, *process, kPool, "Pool._handle_results")) return lost_helper_of(pid);
  }
  return std::nullopt;
}

// The same as pool_worker_died() in a tree of which no death is known: what the pool waits for, no worker does.
std::optional<Explanation> pool_task_gone(const Evidence& evidence) {
  if (evidence.history->has_members()) return std::nullopt;
  const auto read = [&evidence](pid_t pid) { return stacks_of(evidence, pid); };
  const auto runs = [](pid_t) { return false; };  // all are stuck
  for (const pid_t pid : evidence.judgement->stuck) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(pid);
    if (process == nullptr || !has_lost_task(read, pid, process->children, runs)) continue;
    return Explanation{"the pool of process " + std::to_string(pid) +
                       " waits for a result, and no worker has a task: the worker that had it has ended, or the one "
                       "that had the lock with which they take tasks"};
  }
  return std::nullopt;
}

// A worker has died, and the pool has nothing to do, while other threads of its process run.
std::optional<Explanation> pool_lost_task(const Evidence& evidence) {
  const RecordedDeath* dead = evidence.lost_task == 0 ? nullptr : last_death_below(evidence, evidence.lost_task);
  if (dead == nullptr) return std::nullopt;
  return Explanation{lost_task_text(*dead) + "; not proved: other threads of process " +
                     std::to_string(evidence.lost_task) + " go on, and might end the wait"};
}

// The same as pool_helper_lost(), seen while the other threads of the pool run.
std::optional<Explanation> pool_lost_helper(const Evidence& evidence) {
  if (evidence.lost_helper == 0) return std::nullopt;
  return lost_helper_of(evidence.lost_helper);
}

// Or the thread lives, and waits in a callback for a result that it would have to take.
std::optional<Explanation> pool_callback_waits(const Evidence& evidence) {
  const JudgedThread* waits = find_thread(evidence, [&](const JudgedThread& thread) {
    return thread.sample->pid == evidence.lost_helper && waits_in_pool_callback(evidence, thread.sample->tid);
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{waiting_task_text(*waits)};
}

// A thread waits for a multiprocessing.Pool, one of whose tasks waits for something.
std::optional<Explanation> pool_task_waits(const Evidence& evidence) {
  const JudgedThread* works =
      find_stuck(evidence, [&](const JudgedThread& thread) { return waits_in_task_of_pool(evidence, thread); });
  if (works == nullptr) return std::nullopt;
  const pid_t parent = evidence.snapshot->process(works->sample->pid)->parent;
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.sample->tid == parent && evidence.is_in(parent, kPool, "");
  });
  const auto named = name_call(evidence.python.at(works->sample->tid));
  if (waits == nullptr || !named) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for a pool whose worker, " + thread_text(*works) + ", waits at " +
                         named->file + ":" + std::to_string(named->line) +
                         (works->wait.object.empty() ? "" : " for " + works->wait.object) +
                         "; every thread that could end that waits itself, or has ended",
                     {},
                     true};
}

// A task waits for one that has no thread to run in: no task waits for anything else.
std::optional<Explanation> task_waits_in_own_pool(const Evidence& evidence) {
  const auto waits_for_task = [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    const bool in_callback = evidence.is_in(tid, "/concurrent/futures/process.py", "_ExecutorManagerThread.run");
    return waits_in_pool_callback(evidence, tid) ||
           ((runs_task_of_executor(evidence, thread) || in_callback) &&
            evidence.is_in(tid, "/concurrent/futures/_base.py", "Future.result")) ||
           (waits_in_task_of_pool(evidence, thread) &&
            (evidence.is_in(tid, kPool, "ApplyResult.wait") || evidence.is_in(tid, kPool, "IMapIterator.next")));
  };
  const JudgedThread* waits = find_stuck(evidence, waits_for_task);
  const JudgedThread* other = find_stuck(evidence, [&](const JudgedThread& thread) {
    return (runs_task_of_executor(evidence, thread) || waits_in_task_of_pool(evidence, thread)) &&
           !waits_for_task(thread);
  });
  if (other != nullptr) return std::nullopt;
  if (waits == nullptr) return std::nullopt;
  return Explanation{waiting_task_text(*waits)};
}

// Functions that atexit.register() was given have no Python function above them.
bool runs_handlers_of_atexit(const Evidence& evidence, pid_t tid) {
  return evidence.python.count(tid) != 0 && evidence.is_in_native(tid, "Py_FinalizeEx (");
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

// A lock of a manager, which serves it to whoever asks.
std::optional<Explanation> manager_lock_cycle(const Evidence& evidence) {
  const JudgedThread* asks =
      find_stuck(evidence, [&](const JudgedThread& thread) { return asks_manager_for_lock(evidence, thread); });
  if (asks == nullptr) return std::nullopt;
  return Explanation{thread_text(*asks) +
                     " waits for a lock of a manager that only processes that wait themselves could free" +
                     or_holder_has_ended(evidence)};
}

// Locks of multiprocessing, which do not record their holder.
std::optional<Explanation> shared_lock_cycle(const Evidence& evidence) {
  std::vector<const JudgedThread*> waiting;
  for (const JudgedThread* thread : chain_of(evidence)) {
    const auto frames = evidence.python.find(thread->sample->tid);
    if (thread->wait.kind != WaitKind::kSharedFutex || thread->wait.of_sync) continue;
    if (frames == evidence.python.end() || !has_own_code(frames->second)) continue;
    if (takes_shared_lock(frames->second.front())) waiting.push_back(thread);
  }
  if (waiting.empty()) return std::nullopt;
  const std::string who = waiting.size() == 1 ? thread_text(*waiting.front()) + " waits for a lock"
                                              : thread_text(*waiting[0]) + " and " + thread_text(*waiting[1]) +
                                                    (waiting.size() > 2 ? " and others" : "") + " wait for locks";
  return Explanation{who + " of multiprocessing that only processes that wait themselves could free" +
                     or_holder_has_ended(evidence)};
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

// A thread waits for an event, a condition or an item of a queue.
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
    if (!in_loop && !in_lock) return false;
    if (frames == evidence.python.end() || frames->second.empty() || helps_pool(frames->second)) return false;
    if (in_loop) return true;
    const PythonFrame& inner = frames->second.front();
    const bool of_queue = thread->wait.of_sync && thread->wait.owner == 0;
    return of_queue || inner.function == "Condition.wait" || inner.function == "Event.wait" ||
           inner.file.ends_with("/queue.py");
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
