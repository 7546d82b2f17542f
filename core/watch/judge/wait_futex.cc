// Waits in futex(2), as glibc, libgomp and CPython use it.
#include <linux/futex.h>

#include <algorithm>

#include "watch/judge/glibc_mutex.h"
#include "watch/judge/wait.h"
#include "watch/sample/architecture.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

std::string hexadecimal(std::uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

bool is_blocking(int command) {
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
         command == 13 /* FUTEX_LOCK_PI2 */ || command == FUTEX_WAIT_REQUEUE_PI;
}

// With priority inheritance, the kernel knows the owner and reports its end.
bool inherits_priority(int command) { return command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET; }

// glibc's sem_t on 64-bit machines: the value, which is 0 and waited for to change, and the number of waiters.
bool is_semaphore(const ThreadSample& thread, TreeSnapshot* snapshot) {
  constexpr std::uint64_t kWaitersOffset = 4;
  constexpr std::uint32_t kMostThreads = 1U << 22U;
  const std::uint64_t address = thread.call.arguments[0];
  if (static_cast<std::uint32_t>(thread.call.arguments[2]) != 0) return false;
  const auto value = snapshot->word<std::uint32_t>(thread.pid, address);
  const auto waiters = snapshot->word<std::uint32_t>(thread.pid, address + kWaitersOffset);
  return value && waiters && *value == 0 && *waiters > 0 && *waiters <= kMostThreads;
}

// Whether another process of the tree waits for something else in memory that processes outside could open as well:
// the tree uses it for itself.
bool has_partner(const ThreadSample& thread, const Mapping& mapping, TreeSnapshot* snapshot) {
  const auto offset_of = [](const ThreadSample& one, const Mapping& memory) {
    return one.call.arguments[0] - memory.begin + memory.offset;
  };
  return std::any_of(snapshot->threads().begin(), snapshot->threads().end(), [&](const ThreadSample& other) {
    if (other.pid == thread.pid || other.call.running || call_of(other.call.number) != Call::kFutex) return false;
    const Mapping* its = find_mapping(snapshot->maps(other.pid), other.call.arguments[0]);
    if (its == nullptr || !its->shared || snapshot->sharers_of(other.pid, *its).why_reachable.empty()) return false;
    return its->inode != mapping.inode || offset_of(other, *its) != offset_of(thread, mapping);
  });
}

// A mutex records its owner by the number that it has in its own PID namespace.
pid_t owner_of_shared_mutex(const ThreadSample& thread, TreeSnapshot* snapshot) {
  ProcSource* proc = snapshot->proc();
  const bool is_ours = proc->link(std::to_string(thread.pid) + "/ns/pid") == proc->link("self/ns/pid");
  return is_ours ? owner_of_mutex(proc, thread, MutexScope::kShared) : 0;
}

// Only processes that have the same memory could wake it. That no process outside opens it is an assumption where one
// could: a thread that waits for a semaphore there may be a server's, but one that waits for a mutex is not.
Wait shared_futex(const ThreadSample& thread, const Mapping& mapping, int command, TreeSnapshot* snapshot) {
  const TreeSnapshot::Sharers sharers = snapshot->sharers_of(thread.pid, mapping);
  if (!sharers.why_live.empty()) return live_wait(WaitKind::kSharedFutex, sharers.why_live);
  Wait wait{WaitKind::kSharedFutex, "lock in shared memory, " + mapping.path, {}, {}};
  wait.owner = owner_of_shared_mutex(thread, snapshot);
  if (wait.owner != 0) wait.object += ", a mutex of thread " + std::to_string(wait.owner);
  if (!sharers.why_reachable.empty()) {
    if (!snapshot->assumptions().no_outside_peers) return live_wait(WaitKind::kSharedFutex, sharers.why_reachable);
    const std::string assumed = "a process outside may open the memory of the lock, " + mapping.path;
    wait.urgent = wait.owner != 0 || has_partner(thread, mapping, snapshot);
    wait.urgent ? snapshot->assume(assumed) : snapshot->assume_no_client(assumed);
  }
  wait.address = thread.call.arguments[0];
  wait.semaphore = command == FUTEX_WAIT_BITSET && is_semaphore(thread, snapshot);
  add_processes(sharers.processes, &wait);
  return wait;
}

// Waits of mprun.lock, barrier, queue and dict. A lock becomes free only if its holder lets go, or ends.
Wait sync_wait(const ThreadSample& thread, const SyncWord& word, TreeSnapshot* snapshot) {
  Wait wait{WaitKind::kSharedFutex, sync_kind_name(word.kind), {}, {}};
  wait.address = thread.call.arguments[0];
  wait.of_sync = true;
  if (!word.name.empty()) wait.object += " \"" + word.name + "\"";
  const bool has_changed = !word.is_lock && word.value != static_cast<std::uint32_t>(thread.call.arguments[2]);
  if (has_changed || word.is_due) {
    wait.why_live = "it is about to be woken";
    return wait;
  }
  const TreeSnapshot::Sharers sharers = snapshot->sharers_of_sync();
  if (!word.is_lock) {
    wait.why_live = sharers.why_live;
    if (wait.why_live.empty()) add_processes(sharers.processes, &wait);
    return wait;
  }
  const pid_t owner = word.owner != 0 ? snapshot->process_of_thread(word.owner) : 0;
  wait.owner = word.owner;
  if (word.holder.pid == owner && owner != 0) wait.object += ", held by " + to_string(word.holder);
  wait.why_live = !snapshot->blind_spot().empty() ? snapshot->blind_spot() : owner == 0 ? "the lock was let go" : "";
  if (wait.why_live.empty()) add_wakers({{owner, word.owner}}, &wait);
  return wait;
}

void look_for_mutex(const ThreadSample& thread, TreeSnapshot* snapshot, Wait* wait) {
  const pid_t owner = owner_of_mutex(snapshot->proc(), thread, MutexScope::kPrivate);
  if (owner == 0) return;
  wait->kind = WaitKind::kMutex;
  wait->owner = owner;
  wait->object = "mutex " + hexadecimal(thread.call.arguments[0]) + " of thread " + std::to_string(owner);
}

// The thread of the same process whose end pthread_join() waits for; 0: this is another wait.
pid_t joined_sibling(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const pid_t tid = joined_thread(snapshot->proc(), thread);
  const auto& threads = snapshot->process(thread.pid)->threads;
  return std::find(threads.begin(), threads.end(), tid) == threads.end() ? 0 : tid;
}

}  // namespace

Wait decode_futex(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const auto& arguments = thread.call.arguments;
  const std::uint64_t address = arguments[0];
  const int command = static_cast<int>(arguments[1]) & FUTEX_CMD_MASK;
  const bool is_private = (arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
  if (!is_blocking(command)) return live_wait(WaitKind::kOther, "a futex operation that does not wait");
  if (arguments[3] != 0) {
    Wait wait = live_wait(WaitKind::kTimer, "a wait with a time limit");
    wait.address = address;
    wait.timed = true;
    return wait;
  }
  if (!is_private) {
    const Mapping* mapping = find_mapping(snapshot->maps(thread.pid), address);
    if (mapping == nullptr) return live_wait(WaitKind::kOther, "a futex in unknown memory");
    if (mapping->shared && inherits_priority(command)) {
      return live_wait(WaitKind::kSharedFutex, "a lock in shared memory, with inheritance of priority");
    }
    if (const auto word = snapshot->sync_word(*mapping, address)) return sync_wait(thread, *word, snapshot);
    if (mapping->shared) return shared_futex(thread, *mapping, command, snapshot);
    // A futex in memory that may not be written belongs to the file, not to our copy of it.
    if (!mapping->writable) return live_wait(WaitKind::kOther, "a futex in a file");
    const auto word = snapshot->word<std::uint32_t>(thread.pid, address);
    if (!word) return live_wait(WaitKind::kOther, "a futex in memory that cannot be read");
    const pid_t tid = *word == static_cast<std::uint32_t>(arguments[2]) ? joined_sibling(thread, snapshot) : 0;
    if (tid != 0) {
      Wait wait{WaitKind::kThreadEnd, "the end of thread " + std::to_string(tid), {}, {{thread.pid, tid}}};
      wait.address = address;
      return wait;
    }
  }
  Wait wait{WaitKind::kFutex, "futex " + hexadecimal(address), {}, {}};
  wait.address = address;
  add_processes(snapshot->sharing_memory(thread.pid), &wait);
  look_for_mutex(thread, snapshot, &wait);
  wait.semaphore = wait.kind == WaitKind::kFutex && command == FUTEX_WAIT_BITSET && is_semaphore(thread, snapshot);
  return wait;
}

}  // namespace mprun
