#include "watch/judge/orphaned_lock.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "watch/sample/linked_functions.h"

namespace mprun {
namespace {

// The most forks without an exec that a process may descend from.
constexpr int kMostForks = 64;

bool is_in_glibc(const ThreadSample& thread, TreeSnapshot* snapshot) {
  const Mapping* code = find_mapping(snapshot->maps(thread.pid), thread.call.program_counter);
  if (code == nullptr || !code->executable) return false;
  const std::string_view name = std::string_view(code->path).substr(code->path.rfind('/') + 1);
  constexpr std::array<std::string_view, 4> kOfGlibc{"libc.so.6", "libc-2.", "libpthread.so.0", "libpthread-2."};
  return std::any_of(kOfGlibc.begin(), kOfGlibc.end(),
                     [name](std::string_view known) { return name.rfind(known, 0) == 0; });
}

class OrphanFinder {
 public:
  OrphanFinder(const Judgement& judgement, TreeSnapshot* snapshot) : judgement_(judgement), snapshot_(snapshot) {}

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
    std::vector<pid_t> owners;  // living threads that may have the lock, or whose end is awaited
  };

  void add(const JudgedThread& thread) {
    const ThreadSample& sample = *thread.sample;
    const bool wants_gil = thread.wait.kind == WaitKind::kGil;
    if (sample.moved && !wants_gil) return;
    if (!thread.wait.why_live.empty() || judgement_.stuck.count(sample.pid) != 0) return;
    // A handler for the end of a child may do anything.
    const auto may_act = [&](const Waker& waker) {
      return waker.pid != sample.pid && judgement_.live.count(waker.pid) != 0;
    };
    if (std::any_of(thread.wait.wakers.begin(), thread.wait.wakers.end(), may_act)) return;
    Candidate wait{{sample.pid, sample.tid, thread.wait.address, 0, false,
                    sample.voluntary_switches + sample.involuntary_switches},
                   {}};
    const bool joins = thread.wait.kind == WaitKind::kThreadEnd && thread.wait.wakers.front().tid != 0;
    if (joins && may_be_cancelled(sample.pid)) return;
    if (joins || wants_gil) {
      wait.found.owner = thread.wait.wakers.front().tid;
      wait.owners = {wait.found.owner};
      // It runs every 5 ms to ask for the GIL, and gets nowhere while that is not given to another thread.
      if (wants_gil) wait.found.switches = switches_of_gil(sample.pid, wait.found.owner);
    } else if (thread.wait.kind == WaitKind::kMutex && is_certain(sample)) {
      add_owners(*snapshot_->process(sample.pid), thread.wait.owner, &wait);
    }
    if (wait.found.owner == 0) return;
    if (std::find(wait.owners.begin(), wait.owners.end(), sample.tid) != wait.owners.end()) return;
    waits_.push_back(std::move(wait));
  }

  [[nodiscard]] std::uint64_t switches_of_gil(pid_t pid, pid_t holder) const {
    const auto& gils = snapshot_->gils(pid);
    const auto gil =
        std::find_if(gils.begin(), gils.end(), [holder](const PythonGil& one) { return one.last_holder == holder; });
    return gil == gils.end() ? 0 : gil->switch_number;
  }

  void add_owners(const TreeSnapshot::Process& process, pid_t owner, Candidate* wait) const {
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
  [[nodiscard]] bool may_be_inherited(const TreeSnapshot::Process& process, pid_t owner) const {
    if (!process.forked) return false;
    pid_t pid = process.pid;
    for (int i = 0; i < kMostForks; ++i) {
      const auto forker = snapshot_->forker_of(pid);
      if (!forker) {
        const TreeSnapshot::Process* oldest = snapshot_->process(pid);
        return oldest == nullptr || oldest->forked;
      }
      if (forker->tid == owner) return true;
      pid = forker->pid;
    }
    return true;
  }

  // True if the number in the mutex is that of a thread of this process, or of one it was forked from.
  [[nodiscard]] bool is_certain(const ThreadSample& thread) {
    if (!snapshot_->blind_spot().empty() || !is_in_glibc(thread, snapshot_)) return false;
    const auto [known, is_new] = certain_.try_emplace(thread.pid);
    if (is_new) known->second = snapshot_->sharing_memory(thread.pid).size() == 1;
    return known->second;
  }

  // A thread that joins another one ends if a third one cancels it, and then may unlock what it has locked
  // (pthread_cleanup_push()).
  [[nodiscard]] bool may_be_cancelled(pid_t pid) {
    const auto [known, is_new] = cancelled_.try_emplace(pid);
    if (is_new) {
      const pid_t speaker = snapshot_->process(pid)->speaker;
      known->second = may_call("pthread_cancel", snapshot_->proc(), speaker, snapshot_->maps(pid));
    }
    return known->second;
  }

  const Judgement& judgement_;
  TreeSnapshot* snapshot_;
  std::vector<Candidate> waits_;
  std::map<pid_t, bool> certain_, cancelled_;  // by process
};

}  // namespace

std::vector<OrphanedWait> find_orphaned_waits(const Judgement& judgement, TreeSnapshot* snapshot) {
  return OrphanFinder(judgement, snapshot).find();
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
