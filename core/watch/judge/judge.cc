#include "watch/judge/judge.h"

#include <algorithm>

namespace mprun {
namespace {

Judgement judge_once(const Sample& sample, TreeSnapshot* snapshot) {
  Judgement judgement;
  std::unordered_map<pid_t, const JudgedThread*> by_tid;
  for (const ThreadSample& thread : sample.threads) {
    Wait wait = decode_wait(thread, snapshot);
    const bool live = !wait.why_live.empty();
    if (live) judgement.live.insert(thread.pid);
    judgement.threads.push_back({&thread, std::move(wait), live});
  }
  for (const JudgedThread& thread : judgement.threads) by_tid[thread.sample->tid] = &thread;
  const auto can_act = [&](const Waker& waker) {
    // An unknown process may do anything.
    if (waker.tid == 0) return judgement.live.count(waker.pid) != 0 || snapshot->process(waker.pid) == nullptr;
    const auto it = by_tid.find(waker.tid);
    return it == by_tid.end() || it->second->live;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (JudgedThread& thread : judgement.threads) {
      if (thread.live || std::none_of(thread.wait.wakers.begin(), thread.wait.wakers.end(), can_act)) continue;
      thread.live = true;
      judgement.live.insert(thread.sample->pid);
      changed = true;
    }
  }
  for (const auto& [pid, gils] : snapshot->known_gils()) {
    for (const PythonGil& gil : gils) judgement.gil_switches.push_back(gil.switch_number);
  }
  for (const auto& [pid, process] : snapshot->processes()) {
    if (!process.threads.empty() && judgement.live.count(pid) == 0) judgement.stuck.insert(pid);
  }
  return judgement;
}

}  // namespace

Judgement judge(const Sample& sample, TreeSnapshot* snapshot) {
  Judgement judgement = judge_once(sample, snapshot);
  // To look at every process of the machine takes time, so it is done only if something seems stuck.
  const bool must_judge_again = !judgement.stuck.empty() && snapshot->find_holders_outside();
  return must_judge_again ? judge_once(sample, snapshot) : judgement;
}

}  // namespace mprun
