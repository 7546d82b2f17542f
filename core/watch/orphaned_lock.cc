#include "watch/orphaned_lock.h"

#include <linux/futex.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "watch/syscall_table.h"

namespace mprun {
namespace {

// A process may descend from so many forks without an exec.
constexpr int kMostForks = 64;

// glibc's pthread_mutex_t on x86-64 (struct __pthread_mutex_s of its bits/struct_mutex.h).
struct GlibcMutex {
  std::int32_t lock;
  std::uint32_t count;
  std::int32_t owner;
  std::uint32_t users;
  std::int32_t kind;
  std::int16_t spins, elision;
  std::uint64_t previous, next;  // of robust ones
};
static_assert(sizeof(GlibcMutex) == 40);

// Locked, waited for, and of a kind whose owner unlocks it by the word: neither robust, nor shared between processes,
// nor with inheritance or protection of priority, nor with elision, in which the owner is not told.
bool is_plausible(const GlibcMutex& mutex) {
  enum Kind { kTimed, kRecursive, kErrorCheck, kAdaptive };
  constexpr std::int32_t kMostThreads = 4 * 1024 * 1024;  // PID_MAX_LIMIT of the kernel
  constexpr std::uint32_t kMostUsers = 4096;              // the owner, and those that wait for a condition with it
  if (mutex.lock != 2 || mutex.owner <= 0 || mutex.owner > kMostThreads) return false;
  if (mutex.users == 0 || mutex.users > kMostUsers || mutex.kind < kTimed || mutex.kind > kAdaptive) return false;
  if ((mutex.count != 0) != (mutex.kind == kRecursive)) return false;
  return (mutex.kind == kAdaptive || mutex.spins == 0) && mutex.elision == 0 && mutex.previous == 0 && mutex.next == 0;
}

// __lll_lock_wait() of glibc sets the number of the call itself, unlike syscall(), by which other libraries wait for
// locks of their own, and is told whether the lock is private, unlike the locks inside of glibc, which have no owner.
bool is_code_of_mutex(ProcSource* proc, const ThreadSample& thread) {
  constexpr std::array<unsigned char, 5> kSetCall{0xb8, 0xca, 0, 0, 0};     // mov $202,%eax
  constexpr std::array<unsigned char, 5> kSetPrivate{0xbe, 0x80, 0, 0, 0};  // mov $0x80,%esi
  std::array<unsigned char, 20> before{};
  const std::uint64_t end = thread.call.program_counter;
  if (end < before.size() || !proc->memory(thread.tid, end - before.size(), before.data(), before.size())) return false;
  const auto has = [&before](const std::array<unsigned char, 5>& code) {
    return std::search(before.begin(), before.end(), code.begin(), code.end()) != before.end();
  };
  return before[18] == 0x0f && before[19] == 0x05 && has(kSetCall) && !has(kSetPrivate);
}

bool is_in_glibc(const ThreadSample& thread, World* world) {
  const Mapping* code = find_mapping(world->maps(thread.pid), thread.call.program_counter);
  if (code == nullptr || !code->executable) return false;
  const std::string_view name = std::string_view(code->path).substr(code->path.rfind('/') + 1);
  constexpr std::array<std::string_view, 4> kNames{"libc.so.6", "libc-2.", "libpthread.so.0", "libpthread-2."};
  return std::any_of(kNames.begin(), kNames.end(),
                     [name](std::string_view known) { return name.rfind(known, 0) == 0; });
}

class OrphanFinder {
 public:
  OrphanFinder(const Judgement& judgement, World* world) : judgement_(judgement), world_(world) {}

  std::vector<OrphanedWait> find() {
    for (const JudgedThread& thread : judgement_.threads) add(thread);
    for (std::size_t count = 0; count != waits_.size();) {
      count = waits_.size();
      std::set<pid_t> stuck;
      for (const Candidate& wait : waits_) stuck.insert(wait.found.tid);
      std::erase_if(waits_, [&stuck](const Candidate& wait) {
        return std::any_of(wait.owners.begin(), wait.owners.end(),
                           [&stuck](pid_t owner) { return stuck.count(owner) == 0; });
      });
    }
    std::vector<OrphanedWait> found;
    for (const Candidate& wait : waits_) found.push_back(wait.found);
    return found;
  }

 private:
  struct Candidate {
    OrphanedWait found;
    std::vector<pid_t> owners;  // who of the living may have the mutex, or is to end
  };

  void add(const JudgedThread& thread) {
    const ThreadSample& sample = *thread.sample;
    if (sample.moved || !thread.wait.why_live.empty() || judgement_.stuck.count(sample.pid) != 0) return;
    // A handler for the end of a child may do anything.
    const auto may_act = [&](const Waker& waker) {
      return waker.pid != sample.pid && judgement_.live.count(waker.pid) != 0;
    };
    if (std::any_of(thread.wait.wakers.begin(), thread.wait.wakers.end(), may_act)) return;
    Candidate wait{{sample.pid, sample.tid, thread.wait.address, 0, false,
                    sample.voluntary_switches + sample.involuntary_switches},
                   {}};
    if (thread.wait.kind == WaitKind::kThreadEnd && thread.wait.wakers.front().tid != 0) {
      wait.found.owner = thread.wait.wakers.front().tid;
      wait.owners = {wait.found.owner};
    } else if (thread.wait.kind == WaitKind::kMutex && is_certain(sample)) {
      add_owners(*world_->process(sample.pid), owner_of_mutex(world_->proc(), sample), &wait);
    }
    if (wait.found.owner == 0) return;
    if (std::find(wait.owners.begin(), wait.owners.end(), sample.tid) != wait.owners.end()) return;
    waits_.push_back(std::move(wait));
  }

  void add_owners(const World::Process& process, pid_t owner, Candidate* wait) const {
    if (owner == 0) return;
    const auto& threads = process.threads;
    const auto lives = [&threads](pid_t tid) {
      return std::find(threads.begin(), threads.end(), tid) != threads.end();
    };
    wait->found.owner = owner;
    if (lives(owner)) wait->owners.push_back(owner);
    if (owner != process.pid && lives(process.pid) && may_be_inherited(process, owner)) {
      wait->owners.push_back(process.pid);
    }
    wait->found.owner_ended = wait->owners.empty();
  }

  // The first thread of a forked child has the mutexes of the thread that forked, whose number they still hold.
  [[nodiscard]] bool may_be_inherited(const World::Process& process, pid_t owner) const {
    if (!process.forked) return false;
    pid_t pid = process.pid;
    for (int i = 0; i < kMostForks; ++i) {
      const auto forker = world_->forker_of(pid);
      if (!forker) {
        const World::Process* oldest = world_->process(pid);
        return oldest == nullptr || oldest->forked;
      }
      if (forker->tid == owner) return true;
      pid = forker->pid;
    }
    return true;
  }

  // The number in the mutex is that of a thread of this process, or of one it was forked from.
  [[nodiscard]] bool is_certain(const ThreadSample& thread) {
    if (!world_->blind_spot().empty() || !is_in_glibc(thread, world_)) return false;
    const auto [known, is_new] = certain_.try_emplace(thread.pid);
    if (is_new) known->second = world_->sharing_memory(thread.pid).size() == 1;
    return known->second;
  }

  const Judgement& judgement_;
  World* world_;
  std::vector<Candidate> waits_;
  std::map<pid_t, bool> certain_;  // by process
};

}  // namespace

bool seems_to_wait_for_mutex(const ThreadSample& thread) {
  const auto& arguments = thread.call.arguments;
  return thread.state == 'S' && !thread.call.running && call_of(thread.call.number) == Call::kFutex &&
         arguments[1] == (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) && static_cast<std::uint32_t>(arguments[2]) == 2 &&
         arguments[3] == 0;
}

pid_t owner_of_mutex(ProcSource* proc, const ThreadSample& thread) {
  GlibcMutex mutex{};
  if (!seems_to_wait_for_mutex(thread) || !is_code_of_mutex(proc, thread)) return 0;
  if (!proc->memory(thread.tid, thread.call.arguments[0], &mutex, sizeof mutex)) return 0;
  return is_plausible(mutex) ? mutex.owner : 0;
}

std::vector<OrphanedWait> find_orphaned_waits(const Judgement& judgement, World* world) {
  return OrphanFinder(judgement, world).find();
}

void mark_orphaned(Judgement* judgement) {
  const std::vector<OrphanedWait>& waits = judgement->orphaned;
  for (JudgedThread& thread : judgement->threads) {
    const auto found = std::find_if(waits.begin(), waits.end(), [&thread](const OrphanedWait& wait) {
      return wait.tid == thread.sample->tid && wait.pid == thread.sample->pid;
    });
    if (found == waits.end()) continue;
    thread.live = false;
    thread.wait.wakers.clear();
    if (!found->owner_ended) thread.wait.wakers.push_back({found->pid, found->owner});
    if (found->owner_ended) thread.wait.object += ", which has ended";
  }
}

}  // namespace mprun
