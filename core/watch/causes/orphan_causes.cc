// Why threads wait for ever for mutexes in a process that runs (orphaned_lock.h): rules of the table.
#include <algorithm>

#include "watch/causes/cause_rules.h"

namespace mprun {
namespace {

std::string thread_text(pid_t tid, pid_t pid) {
  return "thread " + std::to_string(tid) + " of process " + std::to_string(pid);
}

// The thread lives in a process that this one descends from by fork(). If it has ended since, that is not known.
bool lives_in_ancestor(const Evidence& evidence, pid_t pid, pid_t tid) {
  constexpr int kMostForks = 64;
  const ForkRecord* fork = evidence.history->fork_of(pid);
  for (int i = 0; fork != nullptr && i < kMostForks; ++i) {
    const TreeSnapshot::Process* parent = evidence.snapshot->process(fork->parent);
    if (parent != nullptr && std::find(parent->threads.begin(), parent->threads.end(), tid) != parent->threads.end()) {
      return true;
    }
    fork = evidence.history->fork_of(fork->parent);
  }
  return false;
}

}  // namespace

std::optional<Explanation> orphaned_mutex_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> owners;
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    if (!wait.owner_ended) owners[wait.tid] = wait.owner;
  }
  const auto cycle = find_cycle(owners);
  if (cycle.empty()) return std::nullopt;
  return Explanation{"threads wait for each other's locks: " + cycle_text(cycle)};
}

std::optional<Explanation> orphaned_mutex_held_at_fork(const Evidence& evidence) {
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    const TreeSnapshot::Process* process = evidence.snapshot->process(wait.pid);
    if (!wait.owner_ended || !process->forked || !lives_in_ancestor(evidence, wait.pid, wait.owner)) continue;
    return Explanation{thread_text(wait.tid, wait.pid) + " waits for a mutex that thread " +
                       std::to_string(wait.owner) +
                       " of the process it was forked from held at fork(): no thread here can unlock it"};
  }
  return std::nullopt;
}

std::optional<Explanation> orphaned_mutex_owner_ended(const Evidence& evidence) {
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    if (!wait.owner_ended) continue;
    return Explanation{"thread " + std::to_string(wait.owner) + ", which held the mutex that " +
                       thread_text(wait.tid, wait.pid) + " waits for, has ended"};
  }
  return std::nullopt;
}

std::optional<Explanation> orphaned_mutex(const Evidence& /*evidence*/) {
  return Explanation{"threads wait for mutexes whose owners are stuck themselves"};
}

}  // namespace mprun
