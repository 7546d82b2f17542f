// Waits in futex(2), by the way glibc, libgomp and CPython use it.
#include <linux/futex.h>

#include <algorithm>

#include "watch/wait.h"

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

// Only processes that map the same memory could wake it; which those are is certain where the file has no name any
// more, or never had one, and no process outside of the tree was given it.
Wait shared_futex(const ThreadSample& thread, const Mapping& mapping, World* world) {
  const std::string_view path = mapping.path;
  const bool nameless = (path.size() > 10 && path.substr(path.size() - 10) == " (deleted)") ||
                        path.substr(0, 8) == "/memfd:" || path.substr(0, 6) == "/SYSV0";
  if (!nameless || mapping.inode == 0 || world->is_mapped_outside(mapping)) {
    return live_wait(WaitKind::kSharedFutex, "others may share the memory of the lock");
  }
  Wait wait{WaitKind::kSharedFutex, "lock in shared memory, " + mapping.path, {}, {}};
  wait.address = thread.call.arguments[0];
  for (const auto& [pid, process] : world->processes()) {
    const auto& maps = world->maps(pid);
    if (maps.empty()) return live_wait(WaitKind::kSharedFutex, "the memory of process " + std::to_string(pid));
    const bool maps_it = std::any_of(maps.begin(), maps.end(), [&mapping](const Mapping& other) {
      return other.inode == mapping.inode && other.device == mapping.device;
    });
    if (maps_it) wait.wakers.push_back({pid, 0});
  }
  return wait;
}

// glibc's pthread_mutex_t: lock, count, owner, ... 32 bits each.
void look_for_mutex(const ThreadSample& thread, World* world, Wait* wait) {
  constexpr std::uint64_t kOwnerOffset = 8;
  const auto owner = world->word<std::int32_t>(thread.pid, thread.call.arguments[0] + kOwnerOffset);
  if (!owner || *owner <= 0) return;
  wait->kind = WaitKind::kMutex;
  wait->owner = *owner;
  wait->object = "mutex " + hexadecimal(thread.call.arguments[0]) + " of thread " + std::to_string(*owner);
}

}  // namespace

Wait decode_futex(const ThreadSample& thread, World* world) {
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
    const Mapping* mapping = find_mapping(world->maps(thread.pid), address);
    if (mapping == nullptr) return live_wait(WaitKind::kOther, "a futex in unknown memory");
    if (mapping->shared) return shared_futex(thread, *mapping, world);
    // pthread_join: the kernel clears the word when the thread it names ends.
    const auto tid = static_cast<pid_t>(static_cast<std::uint32_t>(arguments[2]));
    const auto& threads = world->process(thread.pid)->threads;
    const auto word = world->word<std::uint32_t>(thread.pid, address);
    if (!word) return live_wait(WaitKind::kOther, "a futex in memory that cannot be read");
    if (*word == static_cast<std::uint32_t>(arguments[2]) &&
        std::find(threads.begin(), threads.end(), tid) != threads.end()) {
      Wait wait{WaitKind::kThreadEnd, "the end of thread " + std::to_string(tid), {}, {{thread.pid, tid}}};
      wait.address = address;
      return wait;
    }
  }
  Wait wait{WaitKind::kFutex, "futex " + hexadecimal(address), {}, {}};
  wait.address = address;
  add_processes(world->sharing_memory(thread.pid), &wait);
  // Lock words of a contended mutex hold 2; a condition, semaphore or team has other values.
  if (command == FUTEX_WAIT && static_cast<std::uint32_t>(arguments[2]) == 2) look_for_mutex(thread, world, &wait);
  return wait;
}

}  // namespace mprun
