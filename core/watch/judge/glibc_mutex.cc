#include "watch/judge/glibc_mutex.h"

#include <linux/futex.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "watch/sample/architecture.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// glibc's pthread_mutex_t as x86-64 has it. Elsewhere `spins` has 32 bits, of which it needs few, and `elision` is not
// there: the upper half is 0 as well.
struct GlibcMutex {
  std::int32_t lock;
  std::uint32_t count;
  std::int32_t owner;
  std::uint32_t users;
  std::int32_t kind;
  std::int16_t spins, elision;
  std::uint64_t previous, next;  // of robust ones
};
static_assert(sizeof(GlibcMutex) == sizeof(__pthread_mutex_s));
static_assert(offsetof(GlibcMutex, owner) == offsetof(__pthread_mutex_s, __owner));
static_assert(offsetof(GlibcMutex, kind) == offsetof(__pthread_mutex_s, __kind));
static_assert(offsetof(GlibcMutex, spins) == offsetof(__pthread_mutex_s, __spins));
static_assert(offsetof(GlibcMutex, previous) == offsetof(__pthread_mutex_s, __list));

// Locked, waited for, and of a kind whose owner unlocks it by the word: neither robust, nor with inheritance or
// protection of priority, nor with elision, which records no owner.
bool is_plausible(GlibcMutex mutex, MutexScope scope) {
  enum Kind { kTimed, kRecursive, kErrorCheck, kAdaptive, kShared = 128 };
  if (scope == MutexScope::kShared) mutex.kind ^= kShared;
  constexpr std::int32_t kMostThreads = 4 * 1024 * 1024;  // PID_MAX_LIMIT of the kernel
  constexpr std::uint32_t kMostUsers = 4096;              // the owner, and those that wait for a condition with it
  if (mutex.lock != 2 || mutex.owner <= 0 || mutex.owner > kMostThreads) return false;
  if (mutex.users == 0 || mutex.users > kMostUsers || mutex.kind < kTimed || mutex.kind > kAdaptive) return false;
  if ((mutex.count != 0) != (mutex.kind == kRecursive)) return false;
  return (mutex.kind == kAdaptive || mutex.spins == 0) && mutex.elision == 0 && mutex.previous == 0 && mutex.next == 0;
}

// glibc's __lll_lock_wait() sets the call's number itself, unlike syscall(), which other libraries use for their locks.
// It gets as an argument whether the lock is private, unlike the locks inside glibc, which have no owner.
bool is_code_of_mutex(ProcSource* proc, const ThreadSample& thread) {
  std::array<char, architecture::kLockWaitSize> before{};
  const std::uint64_t end = thread.call.program_counter;
  if (end < before.size() || !proc->memory(thread.tid, end - before.size(), before.data(), before.size())) return false;
  const std::string_view code(before.data(), before.size());
  const auto has = [code](std::string_view part) { return code.find(part) != code.npos; };
  return code.ends_with(architecture::kSystemCall) && has(architecture::kSetFutex) &&
         std::none_of(architecture::kSetPrivateWait.begin(), architecture::kSetPrivateWait.end(), has);
}

}  // namespace

bool seems_to_wait_for_mutex(const ThreadSample& thread, MutexScope scope) {
  const auto& arguments = thread.call.arguments;
  const std::uint64_t operation = FUTEX_WAIT | (scope == MutexScope::kPrivate ? FUTEX_PRIVATE_FLAG : 0);
  return thread.state == 'S' && !thread.call.running && call_of(thread.call.number) == Call::kFutex &&
         arguments[1] == operation && static_cast<std::uint32_t>(arguments[2]) == 2 && arguments[3] == 0;
}

pid_t owner_of_mutex(ProcSource* proc, const ThreadSample& thread, MutexScope scope) {
  GlibcMutex mutex{};
  if (!seems_to_wait_for_mutex(thread, scope) || !is_code_of_mutex(proc, thread)) return 0;
  if (!proc->memory(thread.tid, thread.call.arguments[0], &mutex, sizeof mutex)) return 0;
  return is_plausible(mutex, scope) ? mutex.owner : 0;
}

// The kernel clears the word when the thread ends. It holds the number of the thread; since glibc 2.43 it is a state,
// in the struct pthread of the thread.
pid_t joined_thread(ProcSource* proc, const ThreadSample& thread) {
  constexpr architecture::PthreadLayout kLayout = architecture::kPthread;
  const auto& arguments = thread.call.arguments;
  if (thread.call.running || call_of(thread.call.number) != Call::kFutex || arguments[3] != 0) return 0;
  const int command = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
  const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;  // before glibc 2.34; since
  if (!waits || (arguments[1] & FUTEX_PRIVATE_FLAG) != 0) return 0;
  const auto read = [&](std::uint64_t address, auto* value) {
    return proc->memory(thread.tid, address, value, sizeof *value);
  };
  const std::uint64_t pthread = arguments[0] - kLayout.join_state;
  std::uint64_t self = 0;
  if (kLayout.join_state != 0 && read(pthread + kLayout.self, &self) && self == pthread + kLayout.self_target) {
    pid_t tid = 0;
    return read(pthread + kLayout.tid, &tid) ? tid : 0;
  }
  return static_cast<pid_t>(static_cast<std::uint32_t>(arguments[2]));
}

}  // namespace mprun
