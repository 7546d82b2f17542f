// Causes in the pools of multiprocessing and the executors of concurrent.futures: rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"
#include "watch/stacks/python_code.h"
#include "watch/stalls/lost_result.h"

namespace mprun {
namespace {

bool has_thread_in(const Evidence& evidence, const TreeSnapshot::Process& process, std::string_view file,
                   std::string_view function) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [&](pid_t tid) { return evidence.is_in(tid, file, function); });
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
      stacks.threads.push_back({tid, frames->second, true, {}, {}});
    }
  }
  if (stacks.threads.empty()) stacks.threads.push_back({pid, {}, false, {}, {}});
  return stacks;
}

Explanation lost_helper_of(pid_t pid) {
  return {"the thread of process " + std::to_string(pid) +
          " that took the pool's results has ended, most likely because one could not be unpickled, or a callback "
          "raised (a traceback above says what)"};
}

}  // namespace

// The pool waits for the result of the worker that died, unless it was one of an earlier pool, as terminate() ends
// them, or a worker that lives has not finished its task.
std::optional<Explanation> pool_worker_died(const Evidence& evidence) {
  const RecordedDeath* dead = find_dead_worker(evidence);
  if (dead == nullptr || dead->was_asked_to || !is_parent_in(evidence, *dead, kPool, "")) return std::nullopt;
  const JudgedThread* works = find_stuck(evidence, [&](const JudgedThread& thread) {
    return evidence.snapshot->starter_of(*evidence.snapshot->process(thread.sample->pid)) == dead->parent &&
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
    if (process == nullptr || !has_lost_task(read, pid, evidence.snapshot->started_by(pid), runs)) continue;
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
  const pid_t parent = evidence.snapshot->starter_of(*evidence.snapshot->process(works->sample->pid));
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

}  // namespace mprun
