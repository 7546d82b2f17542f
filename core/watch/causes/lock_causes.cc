// Locks that are waited for in a cycle, or whose holder has ended: rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"
#include "watch/causes/joins.h"
#include "watch/judge/library_waits.h"
#include "watch/sample/syscall_table.h"
#include "watch/stacks/python_code.h"

namespace mprun {
namespace {

// "10", "10 and 20", "10, 20 and 2 more".
std::string threads_text(const std::vector<pid_t>& threads) {
  std::string text = std::to_string(threads.front());
  if (threads.size() == 2) return text + " and " + std::to_string(threads[1]);
  if (threads.size() > 2)
    text += ", " + std::to_string(threads[1]) + " and " + std::to_string(threads.size() - 2) + " more";
  return text;
}

// The function that waits for a lock, if it was called by itself, as by a handler or a finalizer that it has run;
// nullptr: it was not. What threading.py waits for is a notice.
const PythonFrame* call_within_itself(const std::vector<PythonFrame>& frames) {
  const auto own = own_frames(frames);
  auto waits = own.begin();
  if (waits != own.end() && waits->function == "Condition.__enter__") ++waits;
  if (waits == own.end() || waits->file.ends_with("/threading.py")) return nullptr;
  const bool again = std::any_of(waits + 1, own.end(), [&](const PythonFrame& frame) {
    return frame.function == waits->function && frame.file == waits->file;
  });
  return again ? &*waits : nullptr;
}

// Where the standard library takes a lock and runs code of the user meanwhile: in logging that of a handler, or its
// own, in functions of many names; in functools, until Python 3.12, one for all objects with the same cached property.
bool takes_lock_of_library(const PythonFrame& frame) {
  if (frame.file.ends_with("/functools.py")) return frame.function == "cached_property.__get__";
  return frame.file.ends_with("/logging/__init__.py");
}

// Locks of Python do not record their holder: no thread is left in the process that could free this one. Code of
// libraries waits for much that is made of a semaphore, and seldom for a lock that was forgotten.
bool waits_for_python_lock(const Evidence& evidence, const JudgedThread& thread) {
  const auto frames = evidence.python.find(thread.sample->tid);
  return thread.wait.kind == WaitKind::kFutex && thread.wait.semaphore &&
         !may_have_lost_threads(evidence, thread.sample->pid) && frames != evidence.python.end() &&
         !frames->second.empty() &&
         (!is_library_file(frames->second.front().file) || takes_lock_of_library(frames->second.front()) ||
          call_within_itself(frames->second) != nullptr);
}

// Threads that wait for each other's mutexes or ends, or one that waits for its own mutex.
std::vector<pid_t> owners_in_a_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> waits_for;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread)) continue;
    const pid_t tid = thread.sample->tid;
    if (thread.wait.owner != 0) waits_for[tid] = thread.wait.owner;
    if (thread.wait.kind == WaitKind::kThreadEnd) waits_for[tid] = thread.wait.wakers.front().tid;
  }
  return find_cycle(waits_for);
}

// The first of these threads that waits so; nullptr: none.
const JudgedThread* find_among(const Evidence& evidence, const std::vector<pid_t>& threads, WaitKind kind) {
  return find_stuck(evidence, [&](const JudgedThread& thread) {
    return thread.wait.kind == kind && std::find(threads.begin(), threads.end(), thread.sample->tid) != threads.end();
  });
}

// The bytes that SQLite locks to write: the reserved byte of a database (os.h), or that of its write-ahead log (wal.c).
bool is_write_lock_of_database(const FileLock& lock) {
  constexpr std::uint64_t kReserved = 0x40000001, kOfLog = 120;
  return lock.kind == FileLock::Kind::kPosix && lock.exclusive && !lock.waiting &&
         (lock.begin == kReserved || lock.begin == kOfLog);
}

// The path of a file that a process has open; empty: it has none of this inode.
std::string path_of(const TreeSnapshot::Process& process, std::uint64_t inode) {
  const auto& open = process.descriptors;
  const auto file = std::find_if(open.begin(), open.end(),
                                 [inode](const Descriptor& descriptor) { return descriptor.info_inode == inode; });
  return file == open.end() ? "" : file->target;
}

}  // namespace

std::optional<Explanation> mutex_cycle(const Evidence& evidence) {
  const auto cycle = owners_in_a_cycle(evidence);
  if (cycle.empty()) return std::nullopt;
  if (find_among(evidence, cycle, WaitKind::kThreadEnd) != nullptr) return std::nullopt;
  std::string text = "threads wait for each other's locks: " + cycle_text(cycle);
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!thread.wait.of_sync || std::find(cycle.begin(), cycle.end(), thread.sample->tid) == cycle.end()) continue;
    text += "; " + thread_text(thread) + " waits for the " + thread.wait.object;
  }
  return Explanation{text};
}

// A thread has locked a mutex, and waits for the end of a thread that waits for it.
std::optional<Explanation> join_with_mutex(const Evidence& evidence) {
  constexpr std::size_t kInnermost = 3;
  const auto cycle = owners_in_a_cycle(evidence);
  const JudgedThread* joins = find_among(evidence, cycle, WaitKind::kThreadEnd);
  const JudgedThread* locks = find_among(evidence, cycle, WaitKind::kMutex);
  if (joins == nullptr || locks == nullptr) return std::nullopt;
  const bool of_loader = evidence.is_in_native(locks->sample->tid, "ld-linux", kInnermost);
  std::string text = thread_text(*joins) + " waits for the end of a thread while " + thread_text(*locks) +
                     " waits for " + (of_loader ? "the lock of the dynamic loader" : "a mutex") + " that thread " +
                     std::to_string(locks->wait.owner) + " has: " + cycle_text(cycle);
  if (!of_loader) return Explanation{std::move(text)};
  return Explanation{std::move(text),
                     "start no thread that is waited for in the constructor of a library: do it in a function that is "
                     "called later"};
}

std::optional<Explanation> mutex_locked_twice(const Evidence& evidence) {
  const auto cycle = owners_in_a_cycle(evidence);
  if (cycle.size() != 1) return std::nullopt;
  return Explanation{"thread " + std::to_string(cycle[0]) + " waits for a mutex that it has locked itself"};
}

// A process waits for a file lock that another open file of its own has.
std::optional<Explanation> own_file_lock(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const pid_t pid = thread.sample->pid;
    const auto number = static_cast<std::int32_t>(thread.sample->call.arguments[0]);
    const Descriptor* file = evidence.snapshot->descriptor(pid, number);
    if (thread.wait.kind != WaitKind::kFileLock || file == nullptr || file->info_inode == 0) return false;
    const auto& holders = thread.wait.wakers;
    if (std::find(holders.begin(), holders.end(), Waker{pid, 0}) == holders.end()) return false;
    const auto& own = evidence.snapshot->process(pid)->descriptors;
    return std::any_of(own.begin(), own.end(), [&](const Descriptor& other) {
      return other.number != number && other.info_inode == file->info_inode && !other.locks.empty();
    });
  });
  if (waits == nullptr) return std::nullopt;
  const auto& holders = waits->wait.wakers;
  const auto other = std::find_if(holders.begin(), holders.end(),
                                  [&](const Waker& holder) { return holder.pid != waits->sample->pid; });
  if (other == holders.end()) {
    return Explanation{thread_text(*waits) +
                       " waits for a lock of a file that it has locked itself, by another descriptor"};
  }
  return Explanation{thread_text(*waits) + " waits for a lock of a file that process " + std::to_string(other->pid) +
                         " has; a descriptor that both have keeps it",
                     "let go of the lock before you wait for a process that needs it, and let children inherit no "
                     "locked file (O_CLOEXEC, `9>&-` in a shell)"};
}

// flock() and fcntl() locks, by process.
std::optional<Explanation> file_lock_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> holder;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || thread.wait.kind != WaitKind::kFileLock || thread.wait.wakers.empty()) continue;
    const pid_t first = thread.wait.wakers.front().pid;
    if (first != thread.sample->pid) holder[thread.sample->pid] = first;
  }
  const auto cycle = find_cycle(holder);
  if (cycle.empty()) return std::nullopt;
  return Explanation{"processes wait for each other's file locks: " + cycle_text(cycle)};
}

// filelock and the like sleep and try again: which file they try is not seen, but which one its holder has locked.
std::optional<Explanation> polled_file_lock(const Evidence& evidence) {
  const JudgedThread* sleeps = find_stuck(evidence, [&](const JudgedThread& thread) {
    const auto frames = evidence.python.find(thread.sample->tid);
    const char* const looks = frames == evidence.python.end() ? nullptr : looks_between_sleeps(frames->second);
    return looks != nullptr && std::string_view(looks) == kLooksForFileLock;
  });
  if (sleeps == nullptr) return std::nullopt;
  for (const FileLock& lock : evidence.snapshot->file_locks()) {
    const TreeSnapshot::Process* holder = evidence.snapshot->process(lock.holder);
    if (lock.waiting || holder == nullptr || evidence.judgement->stuck.count(lock.holder) == 0) continue;
    const std::string path = path_of(*holder, lock.inode);
    if (path.empty()) continue;
    return Explanation{thread_text(*sleeps) + " sleeps and looks whether a file's lock is free; process " +
                       std::to_string(lock.holder) + " has locked " + path + ", and waits itself"};
  }
  return std::nullopt;
}

// SQLite does not wait for a lock: it sleeps and looks again (its busy handler).
std::optional<Explanation> own_database_lock(const Evidence& evidence) {
  const JudgedThread* sleeps = find_thread(evidence, [&](const JudgedThread& thread) {
    return call_of(thread.sample->call.number) == Call::kSleep && evidence.is_in_native(thread.sample->tid, "sqlite3");
  });
  if (sleeps == nullptr) return std::nullopt;
  const auto& locks = evidence.snapshot->file_locks();
  const auto held = std::find_if(locks.begin(), locks.end(), [&](const FileLock& lock) {
    return lock.holder == sleeps->sample->pid && is_write_lock_of_database(lock);
  });
  if (held == locks.end()) return std::nullopt;
  const std::string path = path_of(*evidence.snapshot->process(sleeps->sample->pid), held->inode);
  if (path.empty()) return std::nullopt;
  return Explanation{thread_text(*sleeps) + " waits for the lock of the database " + path +
                     ", which its own process has: another connection has written and not committed"};
}

// All threads of a Python wait for one that is blocked in C and did not release the GIL.
std::optional<Explanation> gil_held(const Evidence& evidence) {
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
  std::string text = "thread " + std::to_string(holder) + " of process " + std::to_string(holds->sample->pid) +
                     " holds the GIL and is blocked in C code (" + to_string(holds->wait.kind) + where +
                     "); all other Python threads wait for it";
  constexpr std::size_t kInnermost = 3;
  if (!evidence.is_in_native(waits->sample->tid, "maybe_destroy_pyobj", kInnermost))
    return Explanation{std::move(text)};
  return Explanation{std::move(text),
                     "keep a reference to the tensors that were given to torch until that call has returned: the last "
                     "thread to let go of a tensor needs the GIL"};
}

// The thread that forked held the lock, and goes on as the child's only one. The lock, with the allocator's word before
// it, is at the same place in the parent, and locked there too.
std::optional<Explanation> python_lock_inherited(const Evidence& evidence) {
  TreeSnapshot* const snapshot = evidence.snapshot;
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (!waits_for_python_lock(evidence, thread)) return false;
    const TreeSnapshot::Process* process = snapshot->process(thread.sample->pid);
    if (!process->forked || process->threads.size() != 1 || snapshot->process(process->parent) == nullptr) return false;
    const std::uint64_t lock = thread.sample->call.arguments[0], before = lock - sizeof lock;
    const auto size = snapshot->word<std::uint64_t>(process->pid, before);
    return size && *size != 0 && size == snapshot->word<std::uint64_t>(process->parent, before) &&
           snapshot->word<std::uint32_t>(process->parent, lock) == 0U;
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) +
                     " waits for a lock that no thread here can free: its parent has it locked too, and held it when "
                     "it forked this process, unless this thread has locked it twice"};
}

std::optional<Explanation> python_lock_taken_twice(const Evidence& evidence) {
  const auto called_again = [&](const JudgedThread& thread) {
    return call_within_itself(evidence.python.at(thread.sample->tid));
  };
  const auto is_alone = [&](const JudgedThread& thread) {
    return evidence.snapshot->process(thread.sample->pid)->threads.size() == 1;
  };
  const auto is_only_one = [&](const JudgedThread& thread) {
    return find_stuck(evidence, [&](const JudgedThread& other) {
             return &other != &thread && other.sample->pid == thread.sample->pid &&
                    waits_for_python_lock(evidence, other);
           }) == nullptr;
  };
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    return waits_for_python_lock(evidence, thread) &&
           (is_alone(thread) || (called_again(thread) != nullptr && is_only_one(thread)));
  });
  if (waits == nullptr) return std::nullopt;
  const pid_t tid = waits->sample->tid;
  if (const PythonFrame* again = called_again(*waits)) {
    return Explanation{thread_text(*waits) + " waits for a lock in " + again->function +
                           ", which was called while it had not returned: " +
                           (is_alone(*waits) ? "the process has no other thread, so this one has the lock, or one that "
                                               "has ended"
                                             : "this thread has the lock itself, or one that waits too"),
                       "do not let a handler, finalizer or callback call " + again->function +
                           " while it runs: leave the work to another thread, or to later"};
  }
  const bool forked = evidence.snapshot->process(waits->sample->pid)->forked;
  Explanation found{thread_text(*waits) +
                    " waits for a lock that no other thread can release: the process has only this one, which has "
                    "locked it before, or a thread that has ended did" +
                    (forked ? ", or its parent had it locked at the fork" : "")};
  if (evidence.is_in_native(tid, "libev") || evidence.is_in_native(tid, "/greenlet/")) {
    found.text += "; while it waits, no other greenlet runs";
    found.cure = "let greenlets share locks of gevent: call gevent.monkey.patch_all() before anything else is imported";
  }
  return found;
}

std::optional<Explanation> python_lock_cycle(const Evidence& evidence) {
  std::vector<pid_t> waiting;
  pid_t pid = 0;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (!is_stuck(evidence, thread) || !waits_for_python_lock(evidence, thread)) continue;
    if (waiting.empty()) pid = thread.sample->pid;
    if (thread.sample->pid == pid) waiting.push_back(thread.sample->tid);
  }
  if (waiting.empty()) return std::nullopt;
  // One that waits for no other's lock: who had it may have ended without a word.
  const bool is_only_one = waiting.size() == 1;
  return Explanation{std::string(is_only_one ? "thread " : "threads ") + threads_text(waiting) + " of process " +
                         std::to_string(pid) + (is_only_one ? " waits for a lock" : " wait for locks") +
                         " that only threads of that process could free, and all of those wait themselves" +
                         (is_only_one ? ", unless one that has ended left it locked" : ""),
                     is_only_one ? "free it in any case, also after an error (`with lock:`), and wait for no thread "
                                   "while you hold a lock that it needs"
                                 : ""};
}

// A thread that imports a module waits meanwhile for another, which needs that module.
std::optional<Explanation> import_cycle(const Evidence& evidence) {
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
  return Explanation{thread_text(*waits) + " waits until a module is imported, which thread " +
                     std::to_string(imports->sample->tid) + " does, and that one waits too"};
}

std::optional<Explanation> mutex_owner_ended(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const Wait& wait = thread.wait;
    if (wait.kind == WaitKind::kSharedFutex) {
      return wait.owner != 0 && !wait.of_sync && evidence.snapshot->process_of_thread(wait.owner) == 0;
    }
    const auto& threads = evidence.snapshot->process(thread.sample->pid)->threads;
    return wait.kind == WaitKind::kMutex && std::find(threads.begin(), threads.end(), wait.owner) == threads.end();
  });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits for a mutex that thread " + std::to_string(waits->wait.owner) +
                     " has locked, which has ended"};
}

}  // namespace mprun
