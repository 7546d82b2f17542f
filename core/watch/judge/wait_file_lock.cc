// Waits for locks of files: flock(2), and fcntl(2) for locks of a process or of an open file.
#include <fcntl.h>

#include <algorithm>

#include "watch/judge/wait.h"
#include "watch/sample/syscall_table.h"

namespace mprun {
namespace {

// A lock of an open file belongs to no one process: the kernel shows this number for its holder and its waiters.
constexpr pid_t kOfOpenFile = -1;

pid_t waiter_of(const ThreadSample& thread) {
  const bool of_open_file = call_of(thread.call.number) == Call::kFcntl &&
                            static_cast<std::int32_t>(thread.call.arguments[1]) == F_OFD_SETLKW;
  return of_open_file ? kOfOpenFile : thread.pid;
}

// Threads of one process may wait for different locks, so the file has to be the same too, if its inode is known.
std::vector<FileLock> blockers_of(const std::vector<FileLock>& locks, pid_t waiter, const Descriptor& file) {
  std::vector<FileLock> blockers;
  if (waiter == kOfOpenFile && file.info_inode == 0) return blockers;
  const FileLock* holder = nullptr;
  for (const FileLock& lock : locks) {
    if (!lock.waiting) {
      holder = &lock;
    } else if (lock.holder == waiter && (file.info_inode == 0 || lock.inode == file.info_inode)) {
      if (holder != nullptr) blockers.push_back(*holder);
    }
  }
  return blockers;
}

// Two open files cannot both have locked the same bytes for writing: so it is this one.
bool is_same_lock(const FileLock& one, const FileLock& other) {
  return one.kind == other.kind && one.exclusive && other.exclusive && one.device == other.device &&
         one.inode == other.inode && one.begin == other.begin && one.end == other.end;
}

// The processes of the tree that have the open file with this lock; empty: not known.
std::vector<pid_t> holders_of(const FileLock& lock, const TreeSnapshot& snapshot) {
  std::vector<pid_t> holders;
  for (const auto& [pid, process] : snapshot.processes()) {
    const bool has_it =
        std::any_of(process.descriptors.begin(), process.descriptors.end(), [&lock](const Descriptor& descriptor) {
          return std::any_of(descriptor.locks.begin(), descriptor.locks.end(),
                             [&lock](const FileLock& held) { return is_same_lock(held, lock); });
        });
    if (has_it) holders.push_back(pid);
  }
  return holders;
}

}  // namespace

// A lock of flock() belongs to an open file, which processes can share: any that has the file open could give it up.
Wait decode_file_lock(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Descriptor* own = snapshot->descriptor(thread.pid, static_cast<std::int32_t>(thread.call.arguments[0]));
  if (own == nullptr) return live_wait(WaitKind::kFileLock, "its file is not known");
  if (!snapshot->blind_spot().empty()) return live_wait(WaitKind::kFileLock, snapshot->blind_spot());
  if (snapshot->is_foreign(*own)) return live_wait(WaitKind::kFileLock, "a file that is open outside too");
  const auto blockers = blockers_of(snapshot->file_locks(), waiter_of(thread), *own);
  if (blockers.empty()) return live_wait(WaitKind::kFileLock, "which process has the lock is not known");
  Wait wait{WaitKind::kFileLock, {}, {}, {}};
  for (const FileLock& blocker : blockers) {
    // For flock(), the kernel names the process that took the lock: flock(1), say, whose shell then has the open file.
    std::vector<pid_t> holders;
    if (blocker.holder == kOfOpenFile || blocker.kind == FileLock::Kind::kFlock)
      holders = holders_of(blocker, *snapshot);
    if (holders.empty() && blocker.holder != kOfOpenFile) holders.push_back(blocker.holder);
    if (holders.empty() || snapshot->process(holders[0]) == nullptr) {
      return live_wait(WaitKind::kFileLock, "a process outside has the lock");
    }
    wait.object = "file lock of process " + std::to_string(holders[0]);
    add_processes(holders, &wait);
  }
  for (const auto& [pid, process] : snapshot->processes()) {
    const bool has_it = std::any_of(process.descriptors.begin(), process.descriptors.end(),
                                    [own](const Descriptor& other) { return other.target == own->target; });
    if (has_it && pid != thread.pid) add_wakers({{pid, 0}}, &wait);
  }
  return wait;
}

}  // namespace mprun
