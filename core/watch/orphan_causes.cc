// Why threads wait for ever for mutexes in a process that runs (orphaned_lock.h): rules as in causes.cc.
#include <algorithm>

#include "watch/causes.h"

namespace mprun {
namespace {

using Rule = std::optional<HangCause> (*)(const Evidence&);

std::string thread_text(pid_t tid, pid_t pid) {
  return "thread " + std::to_string(tid) + " of process " + std::to_string(pid);
}

std::optional<HangCause> orphaned_lock_cycle(const Evidence& evidence) {
  std::map<pid_t, pid_t> owners;
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    if (!wait.owner_ended) owners[wait.tid] = wait.owner;
  }
  const auto cycle = find_cycle(owners);
  if (cycle.empty()) return std::nullopt;
  return cause_of_lock_cycle(cycle);
}

// The thread is one of a process that this one descends from by fork(). Where it has ended since, it is not known.
bool lives_in_ancestor(const Evidence& evidence, pid_t pid, pid_t tid) {
  constexpr int kMostForks = 64;
  const ForkRecord* fork = evidence.family->fork_of(pid);
  for (int i = 0; fork != nullptr && i < kMostForks; ++i) {
    const World::Process* parent = evidence.world->process(fork->parent);
    if (parent != nullptr && std::find(parent->threads.begin(), parent->threads.end(), tid) != parent->threads.end()) {
      return true;
    }
    fork = evidence.family->fork_of(fork->parent);
  }
  return false;
}

std::optional<HangCause> orphaned_lock_held_at_fork(const Evidence& evidence) {
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    const World::Process* process = evidence.world->process(wait.pid);
    if (!wait.owner_ended || !process->forked || !lives_in_ancestor(evidence, wait.pid, wait.owner)) continue;
    return HangCause{"lock-held-at-fork",
                     thread_text(wait.tid, wait.pid) + " waits for a mutex that thread " + std::to_string(wait.owner) +
                         " of the process it was forked from held at fork(): no thread here can unlock it",
                     "fork before other threads start, or start the process by spawn or exec"};
  }
  return std::nullopt;
}

constexpr Rule kOrphanRules[] = {orphaned_lock_cycle, orphaned_lock_held_at_fork};

}  // namespace

HangCause find_cause_of_orphaned_lock(const Evidence& evidence) {
  for (const Rule rule : kOrphanRules) {
    if (auto cause = rule(evidence)) return std::move(*cause);
  }
  HangCause cause;
  for (const OrphanedWait& wait : evidence.judgement->orphaned) {
    if (!wait.owner_ended) continue;
    cause.id = "mutex-owner-ended";
    cause.explanation = "thread " + std::to_string(wait.owner) + ", which held the mutex that " +
                        thread_text(wait.tid, wait.pid) + " waits for, has ended";
    cause.fix = "unlock the mutex on every way out of the thread that locks it, or make it a robust one";
    return cause;
  }
  cause.id = "no-waker";
  cause.explanation = "threads wait for mutexes whose owners are stuck themselves";
  return cause;
}

}  // namespace mprun
