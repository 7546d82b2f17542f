// Locks and notices of programs that are not Python, which do not record who could release them: rules of the table.
// The native stack shows what a thread waits in. A stripped program shows only the functions that libraries export.
#include <linux/futex.h>

#include <algorithm>
#include <array>

#include "watch/causes/cause_rules.h"

namespace mprun {
namespace {

constexpr char kOnceOutside[] =
    "let no initialiser need what it initialises, nor wait for a thread that needs it: start threads afterwards";
constexpr char kDropGuard[] =
    "drop the guard before you lock again: that of a `match` or `if let` lives to the end of the block";

struct NativeWait {
  std::string_view function;  // in the text of a frame
  const char* object;
  const char* cure;  // empty: the table's
};
// In the native stacks of glibc, libstdc++, Qt 5 and 6, and Rust's std 1.63 to 1.95, whose names are mangled in either
// way.
constexpr std::array kLocks = {
    NativeWait{"pthread_rwlock_rdlock (", "a read-write lock, to read", ""},
    NativeWait{"pthread_rwlock_wrlock (", "a read-write lock, to write", ""},
    NativeWait{"RwLock14read_contended", "an RwLock of Rust, to read", ""},
    NativeWait{"RwLock::read_contended", "an RwLock of Rust, to read", ""},
    NativeWait{"RwLock15write_contended", "an RwLock of Rust, to write", ""},
    NativeWait{"RwLock::write_contended", "an RwLock of Rust, to write", ""},
    NativeWait{"Mutex14lock_contended", "a Mutex of Rust", kDropGuard},
    NativeWait{"Mutex::lock_contended", "a Mutex of Rust", kDropGuard},
    NativeWait{"4once5futex", "a Once, OnceLock or LazyLock of Rust", kOnceOutside},
    NativeWait{"once::futex::Once", "a Once, OnceLock or LazyLock of Rust", kOnceOutside},
    NativeWait{"QBasicMutex::lockInternal", "a QMutex of Qt", ""},
    NativeWait{"QRecursiveMutex::", "a QRecursiveMutex of Qt", ""},
    NativeWait{"QReadWriteLock::", "a QReadWriteLock of Qt", ""},
    NativeWait{"__cxa_guard_acquire (", "the initialiser of a static variable", kOnceOutside},
};
constexpr NativeWait kOnce{"", "the function of a std::call_once or pthread_once", kOnceOutside};
constexpr std::array kNotices = {
    NativeWait{"pthread_cond_wait (", "a condition variable", ""},
    NativeWait{"QSemaphore::", "a QSemaphore of Qt", ""},
    NativeWait{"QWaitCondition::wait", "a QWaitCondition of Qt", ""},
    NativeWait{"std::latch::wait", "a std::latch", ""},
    NativeWait{"std::__tree_barrier", "a std::barrier", ""},
    NativeWait{"std::__atomic_futex_unsigned_base", "a std::future", ""},
    NativeWait{"std::__atomic_wait_address", "a std::atomic or std::counting_semaphore", ""},
    NativeWait{"std::__detail::__platform_wait", "a std::atomic, std::latch, std::barrier or semaphore", ""},
    NativeWait{"6Thread4park", "a channel of Rust, or thread::park()", ""},
    NativeWait{"std::thread::park", "a channel of Rust, or thread::park()", ""},
    NativeWait{"6thread9functions4park", "a channel of Rust, or thread::park()", ""},
    NativeWait{"7condvar5futex", "a Condvar of Rust", ""},
    NativeWait{"futex::Condvar", "a Condvar of Rust", ""},
    NativeWait{"futex_condvar", "a Condvar of Rust", ""},
};
constexpr NativeWait kSemaphore{"", "a semaphore", ""};
// A lock waits a call or two above the system call.
constexpr std::size_t kInnermost = 3;

const NativeWait* find_wait(std::span<const NativeWait> known, const Evidence& evidence, const JudgedThread& thread) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const NativeWait& wait) {
    return evidence.is_in_native(thread.sample->tid, wait.function, kInnermost);
  });
  return found == known.end() ? nullptr : &*found;
}

// glibc waits for it in a function without a public name, which the program calls directly, or pthread_once()
// since 2.41; a pthread_once_t that is being run has the value 1 in its lowest bits.
bool waits_for_once(const Evidence& evidence, const JudgedThread& thread) {
  constexpr std::uint64_t kStates = 3, kInProgress = 1;
  const auto native = evidence.native.find(thread.sample->tid);
  const auto named = evidence.named_native(thread.sample->tid);
  const auto& arguments = thread.sample->call.arguments;
  return !named.empty() && named.size() < native->second.size() &&
         (named[0].starts_with("pthread_once (") || named[0].find("libc.so.6") == std::string::npos) &&
         (arguments[2] & kStates) == kInProgress && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
}

const NativeWait* lock_of(const Evidence& evidence, const JudgedThread& thread) {
  if (thread.wait.kind != WaitKind::kFutex) return nullptr;
  if (waits_for_once(evidence, thread)) return &kOnce;
  return find_wait(kLocks, evidence, thread);
}

// Only who waits for a lock or for the end of a thread can hold what the others wait for, unless it has ended.
bool is_in_cycle(const Evidence& evidence, const JudgedThread& thread) {
  return thread.wait.kind == WaitKind::kThreadEnd || thread.wait.kind == WaitKind::kMutex ||
         lock_of(evidence, thread) != nullptr;
}

std::vector<const JudgedThread*> threads_of(const Evidence& evidence, pid_t pid) {
  std::vector<const JudgedThread*> threads;
  for (const JudgedThread& thread : evidence.judgement->threads) {
    if (thread.sample->pid == pid && thread.wait.kind != WaitKind::kEnded) threads.push_back(&thread);
  }
  return threads;
}

Explanation native_cycle_text(const Evidence& evidence, const std::vector<const JudgedThread*>& threads) {
  constexpr int kMostListed = 4;
  Explanation explanation;
  int listed = 0;
  for (const JudgedThread* thread : threads) {
    const NativeWait* lock = lock_of(evidence, *thread);
    if (lock == nullptr || ++listed > kMostListed) continue;
    explanation.text += (listed == 1 ? "" : ", ") + thread_text(*thread) + " waits for " + lock->object;
    explanation.cure = lock->cure;
  }
  explanation.text += threads.size() == 1
                          ? ": the process has no other thread, so this one has it, or one that has ended"
                          : "; all threads of the process wait like this or for the end of such a thread";
  return explanation;
}

// libgomp's locks and critical sections, as it waits for one that others wait for too (config/linux/mutex.c).
bool waits_for_openmp_lock(const Evidence& evidence, const JudgedThread& thread) {
  constexpr auto kContended = static_cast<std::uint32_t>(-1);
  return waits_in_libgomp(evidence, thread) && !may_have_lost_threads(evidence, thread.sample->pid) &&
         static_cast<std::uint32_t>(thread.sample->call.arguments[2]) == kContended;
}

// LLVM's OpenMP itself waits, not code that a region has called. It spins for locks, and blocks at barriers.
bool waits_in_libomp(const Evidence& evidence, const JudgedThread& thread) {
  const auto native = evidence.native.find(thread.sample->tid);
  if (thread.wait.kind != WaitKind::kFutex || native == evidence.native.end()) return false;
  const auto caller = std::find_if(native->second.begin(), native->second.end(), [](const std::string& frame) {
    return frame.find("libc.so.6") == std::string::npos;
  });
  return caller != native->second.end() && caller->find("libomp.so") != std::string::npos;
}

// A barrier of OpenMP; the end of a region is one, too. Threads of libgomp wait there (config/linux/bar.c) and for
// locks.
bool waits_at_openmp_barrier(const Evidence& evidence, const JudgedThread& thread) {
  if (may_have_lost_threads(evidence, thread.sample->pid)) return false;
  if (waits_in_libgomp(evidence, thread)) return !waits_for_openmp_lock(evidence, thread);
  return waits_in_libomp(evidence, thread);
}

// What the main thread of the outermost stuck process waits for in the end, if that is one thread after the other.
const JudgedThread* end_of_joins(const Evidence& evidence) {
  const JudgedThread* at = find_stuck(evidence, [](const JudgedThread&) { return true; });
  std::set<pid_t> seen;
  while (at != nullptr && (at->wait.kind == WaitKind::kThreadEnd || at->wait.kind == WaitKind::kChild) &&
         seen.insert(at->sample->tid).second) {
    const Waker& next = at->wait.wakers.front();
    at = find_stuck(evidence, [&](const JudgedThread& thread) {
      return thread.sample->tid == (next.tid != 0 ? next.tid : next.pid);
    });
  }
  return at;
}

}  // namespace

std::optional<Explanation> native_lock_cycle(const Evidence& evidence) {
  const JudgedThread* waits = find_stuck(evidence, [&](const JudgedThread& thread) {
    if (lock_of(evidence, thread) == nullptr || may_have_lost_threads(evidence, thread.sample->pid)) return false;
    const auto threads = threads_of(evidence, thread.sample->pid);
    return std::all_of(threads.begin(), threads.end(),
                       [&](const JudgedThread* one) { return is_in_cycle(evidence, *one); });
  });
  if (waits == nullptr) return std::nullopt;
  return native_cycle_text(evidence, threads_of(evidence, waits->sample->pid));
}

std::optional<Explanation> openmp_lock_cycle(const Evidence& evidence) {
  const JudgedThread* waits =
      find_stuck(evidence, [&](const JudgedThread& thread) { return waits_for_openmp_lock(evidence, thread); });
  if (waits == nullptr) return std::nullopt;
  return Explanation{thread_text(*waits) +
                     " waits for a lock or a critical section of OpenMP, and every thread that could leave it waits "
                     "itself, or has left it locked"};
}

std::optional<Explanation> native_barrier_short(const Evidence& evidence) {
  const JudgedThread* waits = end_of_joins(evidence);
  if (waits == nullptr || !evidence.is_in_native(waits->sample->tid, "pthread_barrier_wait (", kInnermost)) {
    return std::nullopt;
  }
  return Explanation{thread_text(*waits) + " waits at a barrier that not all parties reach"};
}

// All threads of a team have come to a barrier, but not to the same one.
std::optional<Explanation> openmp_barrier_short(const Evidence& evidence) {
  const JudgedThread* waits = end_of_joins(evidence);
  if (waits == nullptr || !waits_at_openmp_barrier(evidence, *waits)) return std::nullopt;
  const auto threads = threads_of(evidence, waits->sample->pid);
  const bool all_wait = std::all_of(threads.begin(), threads.end(), [&](const JudgedThread* one) {
    return is_stuck(evidence, *one) && waits_at_openmp_barrier(evidence, *one);
  });
  if (!all_wait || threads.size() < 2) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits at a barrier of OpenMP, as all " + std::to_string(threads.size()) +
                     " threads of its process do, but not at the same one: the end of a region is one too"};
}

// exit() runs handlers, and destroys static objects: such as a pool of threads, whose destructor joins them.
std::optional<Explanation> native_exit_waits(const Evidence& evidence) {
  const JudgedThread* exits = find_stuck(evidence, [&](const JudgedThread& thread) {
    const WaitKind kind = thread.wait.kind;
    return (kind == WaitKind::kThreadEnd || kind == WaitKind::kFutex) && thread.sample->tid == thread.sample->pid &&
           evidence.python.count(thread.sample->tid) == 0 &&
           (evidence.is_in_native(thread.sample->tid, "exit (libc.so.6)") ||
            evidence.is_in_native(thread.sample->tid, "__run_exit_handlers"));
  });
  if (exits == nullptr) return std::nullopt;
  return Explanation{thread_text(*exits) + " has come to its end, and a function that its exit calls waits for " +
                     exits->wait.object};
}

std::optional<Explanation> native_never_notified(const Evidence& evidence) {
  const JudgedThread* waits = end_of_joins(evidence);
  if (waits == nullptr || evidence.python.count(waits->sample->tid) != 0) return std::nullopt;
  const NativeWait* notice = waits->wait.kind == WaitKind::kFutex ? find_wait(kNotices, evidence, *waits) : nullptr;
  if (notice == nullptr && waits->wait.semaphore) notice = &kSemaphore;
  if (notice == nullptr && waits->wait.kind != WaitKind::kEventfd) return std::nullopt;
  return Explanation{thread_text(*waits) + " waits to be notified (" +
                         (notice == nullptr ? waits->wait.object : notice->object) +
                         "), and every thread that could do so waits itself, or has ended",
                     {},
                     !waits->wait.urgent};
}

}  // namespace mprun
