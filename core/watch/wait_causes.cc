// Causes that follow from who waits for whom: rules as in causes.cc, asked after those that know more. The last of them
// fits every proof.
#include <fcntl.h>

#include <algorithm>

#include "watch/cause_rules.h"
#include "watch/joins.h"
#include "watch/library_waits.h"
#include "watch/syscall_table.h"

namespace mprun {
namespace {

bool wakes(const JudgedThread& thread, pid_t pid) {
  return std::any_of(thread.wait.wakers.begin(), thread.wait.wakers.end(),
                     [pid](const Waker& waker) { return waker.pid == pid; });
}

bool talks(const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  return kind == WaitKind::kPipeRead || kind == WaitKind::kPipeWrite || kind == WaitKind::kSocket ||
         kind == WaitKind::kPoll;
}

bool has_thread_in(const Evidence& evidence, const World::Process& process, std::string_view file,
                   std::string_view function) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [&](pid_t tid) { return evidence.is_in(tid, file, function); });
}

// What is between a person and the hang: the main thread of the outermost process that is stuck, what it waits for, and
// so on. Of a process that is waited for its main thread; of its own process all the others.
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

// Of a forked child only what it has done since.
bool has_own_code(const std::vector<PythonFrame>& frames) {
  for (const PythonFrame& frame : frames) {
    if (!is_library_file(frame.file)) return true;
    if (frame.function == "Popen._launch") return false;
  }
  return false;
}

// Whether one of the pipes that it polls is open in this mode only.
bool polls_pipe(const Evidence& evidence, const JudgedThread& thread, std::uint64_t mode) {
  const auto& polled = thread.wait.polled;
  return std::any_of(polled.begin(), polled.end(), [&](std::int64_t number) {
    const Descriptor* descriptor = evidence.world->descriptor(thread.sample->pid, number);
    return descriptor != nullptr && descriptor->kind == Descriptor::Kind::kPipe &&
           (descriptor->flags & O_ACCMODE) == mode;
  });
}

}  // namespace

bool waits_to_write(const Evidence& evidence, const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  return kind == WaitKind::kPipeWrite ||
         (kind == WaitKind::kSocket && call_of(thread.sample->call.number) == Call::kWrite) ||
         (kind == WaitKind::kPoll && polls_pipe(evidence, thread, O_WRONLY));
}

bool waits_to_read(const Evidence& evidence, const JudgedThread& thread) {
  const WaitKind kind = thread.wait.kind;
  return kind == WaitKind::kPipeRead ||
         (kind == WaitKind::kSocket && call_of(thread.sample->call.number) == Call::kRead) ||
         (kind == WaitKind::kPoll && polls_pipe(evidence, thread, O_RDONLY));
}

bool has_open_too(const Evidence& evidence, const JudgedThread& thread, pid_t pid) {
  if (thread.wait.kind != WaitKind::kPipeRead && thread.wait.kind != WaitKind::kPipeWrite) return true;
  const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
  const Descriptor* own = evidence.world->descriptor(thread.sample->pid, number);
  const World::Process* process = evidence.world->process(pid);
  if (own == nullptr || process == nullptr) return false;
  if (own->kind != Descriptor::Kind::kFile || own->terminal || slave_of_terminal(*own)) return true;
  return std::any_of(process->descriptors.begin(), process->descriptors.end(),
                     [own](const Descriptor& descriptor) { return descriptor.target == own->target; });
}

// FIFOs that are opened at one end, and at the other by nobody.
std::optional<HangCause> fifo_not_opened(const Evidence& evidence) {
  std::string text;
  std::set<pid_t> processes;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || call_of(thread.sample->call.number) != Call::kOpen) continue;
    if (!processes.insert(thread.sample->pid).second) continue;
    text += (text.empty() ? "" : "; ") + thread_text(thread) + " waits until somebody opens " + thread.wait.object +
            (thread.wait.kind == WaitKind::kPipeRead ? " to write" : " to read");
  }
  if (processes.empty()) return std::nullopt;
  return HangCause{
      "fifo-not-opened", text,
      "open FIFOs in the same order on both sides, and see that who is to open the other end has not ended",
      processes.size() == 1};
}

// It came before the wait began, and comes no more.
std::optional<HangCause> child_signal_missed(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == WaitKind::kSignal && evidence.world->process(thread.sample->pid)->children.empty();
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"child-signal-missed",
                   thread_text(*waits) +
                       " waits for the signal of a child's end, and has no child: the signal came "
                       "before it began to wait, or the child was never started",
                   "block SIGCHLD before you look whether a child has ended, and wait with sigsuspend, or use waitpid"};
}

// Both read, both write, or each waits to be read before it reads.
std::optional<HangCause> pipe_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> waits_for;
  std::map<pid_t, const JudgedThread*> threads;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    const bool is_link = talks(thread) || thread.wait.kind == WaitKind::kChild;
    if (!is_stuck(evidence, thread) || !is_link || thread.wait.wakers.empty()) continue;
    const auto other = std::find_if(thread.wait.wakers.begin(), thread.wait.wakers.end(),
                                    [&](const Waker& waker) { return waker.pid != thread.sample->pid; });
    if (other == thread.wait.wakers.end() || waits_for.count(thread.sample->pid) != 0) continue;
    waits_for[thread.sample->pid] = other->pid;
    threads[thread.sample->pid] = &thread;
  }
  const auto cycle = find_cycle(waits_for);
  const auto talkers = std::count_if(cycle.begin(), cycle.end(), [&](pid_t pid) { return talks(*threads.at(pid)); });
  if (talkers < 2) return std::nullopt;
  std::string text;
  bool all_write = true;
  for (const pid_t pid : cycle) {
    const JudgedThread& thread = *threads.at(pid);
    text += (text.empty() ? "" : ", ") + thread_text(thread);
    if (!talks(thread)) {
      text += " waits for the end of " + std::to_string(waits_for.at(pid));
      continue;
    }
    const bool writes = waits_to_write(evidence, thread);
    all_write = all_write && writes;
    text += (writes ? " waits until " : " waits to hear on ") + thread.wait.object +
            (writes ? " is read by " : " from ") + std::to_string(waits_for.at(pid));
  }
  return HangCause{"pipe-cycle", "processes wait for each other: " + text,
                   all_write ? "read what the other side writes before it fills the pipe, by a thread if need be"
                             : "let one side write first; flush what it has written, and close what it does not use",
                   !all_write};
}

// The parent waits for the end of a child that reads what the parent has not closed.
std::optional<HangCause> input_never_closed(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const World::Process* process = evidence.world->process(thread.sample->pid);
    if (!waits_to_read(evidence, thread) || !wakes(thread, process->parent)) return false;
    if (!has_open_too(evidence, thread, process->parent)) return false;
    return find_stuck(evidence, [&](const JudgedThread& other) {
             return other.sample->pid == process->parent && other.wait.kind == WaitKind::kChild &&
                    wakes(other, process->pid);
           }) != nullptr;
  });
  if (reader == nullptr) return std::nullopt;
  const std::string parent = std::to_string(evidence.world->process(reader->sample->pid)->parent);
  return HangCause{"input-never-closed",
                   thread_text(*reader) + " reads " + reader->wait.object + ", which process " + parent +
                       " has open for writing, and that waits for the end of the reader",
                   "write what the child is to read and close the pipe, before you wait for the child"};
}

// Somebody reads to the end of what a child of its child has inherited.
std::optional<HangCause> pipe_kept_by_grandchild(const Evidence& evidence) {
  const JudgedThread* reader = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& writers = thread.wait.wakers;
    if ((thread.wait.kind != WaitKind::kPipeRead && thread.wait.kind != WaitKind::kPoll) || writers.empty())
      return false;
    return evidence.is_in(thread.sample->tid, "/subprocess.py", "") &&
           std::all_of(writers.begin(), writers.end(), [&](const Waker& waker) {
             const World::Process* writer = evidence.world->process(waker.pid);
             return writer != nullptr && waker.pid != thread.sample->pid && writer->parent != thread.sample->pid;
           });
  });
  if (reader == nullptr) return std::nullopt;
  const std::string writer = std::to_string(reader->wait.wakers.front().pid);
  return HangCause{"pipe-kept-by-grandchild",
                   thread_text(*reader) + " reads " + reader->wait.object + " to its end, which never comes: process " +
                       writer + ", which is no child of it, has inherited the writing end",
                   "give what runs in the background its own output, as in `command >/dev/null 2>&1 &`, or end it"};
}

HangCause cause_of_lost_pool_helper(pid_t pid) {
  return {"pool-helper-lost",
          "the thread of process " + std::to_string(pid) +
              " that took the pool's results has ended, most likely because one could not be unpickled, or a callback "
              "raised (a traceback above says what)",
          "return what can be unpickled (an exception needs an __init__ that its args fit), and let no callback raise"};
}

// Nobody is there who could take the results of a pool.
std::optional<HangCause> pool_helper_lost(const Evidence& evidence) {
  constexpr std::string_view kPool = "/multiprocessing/pool.py";
  for (const pid_t pid : evidence.judgement->stuck) {
    const World::Process* process = evidence.world->process(pid);
    if (process == nullptr || !has_thread_in(evidence, *process, kPool, "Pool._handle_workers")) continue;
    if (!has_thread_in(evidence, *process, kPool, "Pool._handle_results")) return cause_of_lost_pool_helper(pid);
  }
  return std::nullopt;
}

// A task waits for one that has no thread to run in.
std::optional<HangCause> task_waits_in_own_pool(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    const bool of_executor = evidence.is_in(tid, "/concurrent/futures/thread.py", "_worker");
    const bool of_pool = evidence.is_in(tid, "/multiprocessing/pool.py", "worker");
    const bool in_callback = evidence.is_in(tid, "/concurrent/futures/process.py", "_ExecutorManagerThread.run");
    return ((of_executor || in_callback) && evidence.is_in(tid, "/concurrent/futures/_base.py", "Future.result")) ||
           (of_pool && (evidence.is_in(tid, "/multiprocessing/pool.py", "ApplyResult.wait") ||
                        evidence.is_in(tid, "/multiprocessing/pool.py", "IMapIterator.next")));
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"task-waits-in-own-pool",
                   thread_text(*waits) +
                       " runs a task of a pool, or the callback of one, and waits in it for another task, which waits "
                       "for that thread",
                   "wait for tasks outside of the pool that runs them, or give it more threads than tasks that wait"};
}

// The program is over, and its exit waits.
std::optional<HangCause> exit_handler_waits(const Evidence& evidence) {
  const JudgedThread* main = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t tid = thread.sample->tid;
    return tid == thread.sample->pid && (evidence.is_in(tid, "/threading.py", "_shutdown") ||
                                         evidence.is_in(tid, "/multiprocessing/util.py", "_exit_function") ||
                                         evidence.is_in(tid, "/concurrent/futures/thread.py", "_python_exit") ||
                                         evidence.is_in(tid, "/concurrent/futures/process.py", "_python_exit"));
  });
  if (main == nullptr) return std::nullopt;
  const JudgedThread* other = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (&thread == main || thread.sample->tid == main->sample->tid) return false;
    const auto frames = evidence.python.find(thread.sample->tid);
    return frames == evidence.python.end() || !is_library_helper(frames->second);
  });
  return HangCause{"exit-handler-waits",
                   thread_text(*main) + " has come to its end, and waits at its exit for what does not end: " +
                       (other == nullptr ? main->wait.object : thread_text(*other)),
                   "end it before, or make it a daemon: daemon=True", true};
}

// Locks of multiprocessing, which do not say who has them.
std::optional<HangCause> shared_lock_cycle(const Evidence& evidence) {
  std::vector<const JudgedThread*> waiting;
  for (const JudgedThread* thread : chain_of(evidence)) {
    const auto frames = evidence.python.find(thread->sample->tid);
    if (thread->wait.kind != WaitKind::kSharedFutex || thread->wait.of_sync) continue;
    if (frames == evidence.python.end() || !has_own_code(frames->second)) continue;
    const auto is_acquired = [](const PythonFrame& frame) {
      return frame.function == "SemLock.__enter__" || !is_library_file(frame.file);
    };
    if (is_acquired(frames->second.front())) waiting.push_back(thread);
  }
  if (waiting.empty()) return std::nullopt;
  const std::string who = waiting.size() == 1 ? thread_text(*waiting.front()) + " waits for a lock"
                                              : thread_text(*waiting[0]) + " and " + thread_text(*waiting[1]) +
                                                    (waiting.size() > 2 ? " and others" : "") + " wait for locks";
  return HangCause{"lock-cycle", who + " of multiprocessing that only processes that wait themselves could free",
                   "take locks in the same order everywhere, free them in any case (`with lock:`), and wait for no "
                   "process while you hold a lock that it needs"};
}

std::optional<HangCause> mutex_owner_ended(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto& threads = evidence.world->process(thread.sample->pid)->threads;
    return thread.wait.kind == WaitKind::kMutex &&
           std::find(threads.begin(), threads.end(), thread.wait.owner) == threads.end();
  });
  if (waits == nullptr) return std::nullopt;
  return HangCause{"mutex-owner-ended",
                   thread_text(*waits) + " waits for a mutex that thread " + std::to_string(waits->wait.owner) +
                       " has locked, which has ended",
                   "unlock the mutex on every way out of the thread that locks it, or make it a robust one"};
}

// The server of a manager is asked to wait for an event, a condition, an item of a queue, and does.
bool asks_manager_to_wait(const Evidence& evidence, const JudgedThread& thread) {
  constexpr std::string_view kManagers = "/multiprocessing/managers.py";
  return thread.wait.kind == WaitKind::kSocket &&
         evidence.is_in(thread.sample->tid, kManagers, "BaseProxy._callmethod") &&
         find_stuck(evidence, [&](const JudgedThread& serves) {
           const auto frames = evidence.python.find(serves.sample->tid);
           return evidence.is_in(serves.sample->tid, kManagers, "Server.serve_client") &&
                  frames->second.front().function == "Condition.wait";
         }) != nullptr;
}

// Waits for an event, a condition, an item of a queue.
std::optional<HangCause> never_notified(const Evidence& evidence) {
  const auto is_told = [&](const JudgedThread* thread) {
    const auto frames = evidence.python.find(thread->sample->tid);
    if (asks_manager_to_wait(evidence, *thread)) return true;
    const bool in_loop = is_in_event_loop(evidence, *thread);
    const bool in_lock = thread->wait.kind == WaitKind::kFutex || thread->wait.kind == WaitKind::kSharedFutex;
    if (!in_loop && !in_lock) return false;
    if (frames == evidence.python.end() || !has_own_code(frames->second)) return false;
    if (in_loop) return true;
    const PythonFrame& inner = frames->second.front();
    const bool of_queue = thread->wait.of_sync && thread->wait.owner == 0;
    return of_queue || inner.function == "Condition.wait" || inner.function == "Event.wait" ||
           inner.file.ends_with("/queue.py");
  };
  const auto chain = chain_of(evidence);
  const auto found = std::find_if(chain.begin(), chain.end(), is_told);
  if (found == chain.end()) return std::nullopt;
  const JudgedThread* waits = *found;
  const auto named = name_call(evidence.python.at(waits->sample->tid));
  const std::string at = named && !named->call.empty() ? " waits in " + named->call : " waits";
  const std::string where = named ? " at " + named->file + ":" + std::to_string(named->line) : "";
  return HangCause{"never-notified",
                   thread_text(*waits) + at + where +
                       " to be told something, and all who could tell it wait themselves, or have ended",
                   "see to it that whoever is to set, notify or put does so on every way, also after an error", true};
}

// The last rule: who could act, and why none does.
HangCause no_waker(const Evidence& evidence) {
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
  return {"no-waker", text.empty() ? "all threads that could act wait for each other" : text,
          "change one of them so that it does not wait, or waits with a limit of time", true};
}

bool is_like_waiting_for_signal(const HangCause& cause) {
  return cause.looks_idle || cause.id == "pipe-never-closed" || cause.id == "input-never-closed" ||
         cause.id == "pipe-kept-by-grandchild";
}

}  // namespace mprun
