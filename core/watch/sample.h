// Sample: what every thread of a tree of processes was doing, and how often it had run, at one reading of /proc. Two
// samples that agree in everything prove that no thread ran in between: the snapshot lemma, on which every proof of a
// hang rests.
#pragma once

#include <vector>

#include "base/clock.h"
#include "procfs/process_facts.h"

namespace mprun {

/// The watch looks several times a second. After a longer gap it was stopped, and what it watches probably too.
inline constexpr Nanos kStoppedAfter = 2 * kNanosPerSecond;

struct ThreadSample {
  pid_t pid = 0, tid = 0;
  char state = '?';
  SyscallLine call;
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t runs = 0;  ///< how often it got a CPU
  pid_t tracer = 0;        ///< who may stop it, and let it go on; 0: nobody
  bool moved = false;      ///< still_part(): it has run meanwhile
  bool hidden = false;     ///< mprun may not look at what it does: `call` says nothing
  bool operator==(const ThreadSample&) const = default;
};

struct Sample {
  std::vector<ThreadSample> threads;  ///< by process, as the kernel lists them; a process that has ended is not in it
  bool whole = true;                  ///< false: a thread was there that could not be read
  std::vector<pid_t> ended = {};      ///< zombies of the tree, where they were looked for: process_tree()
};

/// What a thread does now; false if it cannot be read. `thread` says which.
[[nodiscard]] bool sample_thread(ProcSource* proc, ThreadSample* thread);
[[nodiscard]] Sample take_sample(ProcSource* proc, const std::vector<pid_t>& processes);

/// `after`, in which every thread that was not blocked since it was read for `before` counts as running, with all the
/// others of its process if one of them came or went. The rest stood still together, as by stood_still(). nullopt: a
/// sample is not whole.
[[nodiscard]] std::optional<Sample> still_part(const Sample& before, const Sample& after);

/// True: every thread was blocked from the time it was read for `before` until it was read for `after`, and no other
/// thread came or went. So one instant exists at which all of them were blocked together. That holds for
/// hidden ones too, for whoever runs may be seen by everybody.
[[nodiscard]] bool stood_still(const Sample& before, const Sample& after);

}  // namespace mprun
