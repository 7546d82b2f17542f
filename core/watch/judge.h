// The judge: who can still move? A thread is live if it could go on by itself or from outside, or if anyone who could
// wake it is live. The rest can never move again. A pure function of a sample in which all threads stood still, and the
// world at that instant.
#pragma once

#include "watch/wait.h"

namespace mprun {

struct JudgedThread {
  const ThreadSample* sample = nullptr;
  Wait wait;
  bool live = true;
};

struct Judgement {
  std::vector<JudgedThread> threads;        ///< as in the sample
  std::set<pid_t> stuck, live;              ///< processes: all of their threads are blocked for ever, or not
  std::vector<std::uint64_t> gil_switches;  ///< of the GILs whose waiters were taken as waiting for the holder
  [[nodiscard]] bool is_deadlock() const { return live.empty() && !stuck.empty(); }
};

/// `sample` outlives the judgement.
[[nodiscard]] Judgement judge(const Sample& sample, World* world);

}  // namespace mprun
