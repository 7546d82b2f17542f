// Sample: what every thread of a tree of processes was doing, and how often it had run, at one reading of /proc. Two
// samples that agree in everything prove that no thread ran in between: the snapshot lemma, on which every proof of a
// hang rests.
#pragma once

#include <vector>

#include "base/clock.h"
#include "procfs/process_facts.h"

namespace mprun {

/// The watch looks several times a second. After a longer gap, it was stopped, and probably what it watches too.
inline constexpr Nanos kStoppedAfter = 2 * kNanosPerSecond;

struct ThreadSample {
  pid_t pid = 0, tid = 0;
  char state = '?';
  SyscallLine call;
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;
  std::uint64_t runs = 0;  ///< how often it got a CPU
  pid_t tracer = 0;        ///< its tracer, which may stop it and let it go on; 0: none
  bool moved = false;      ///< still_part(): it has run meanwhile
  bool hidden = false;     ///< mprun may not see what it does: `call` says nothing
  bool ticks = false;      ///< the event handler of CUDA, which wakes up every 100 ms; how often it runs says nothing
  bool operator==(const ThreadSample&) const = default;
};

struct Sample {
  std::vector<ThreadSample> threads;  ///< by process, as the kernel lists them; a process that has ended is not in it
  bool whole = true;                  ///< false: there was a thread that could not be read
  std::vector<pid_t> ended = {};      ///< zombies of the tree, if process_tree() looked for them
};

/// Reads what the thread named in `thread` does now; false if it cannot be read.
[[nodiscard]] bool sample_thread(ProcSource* proc, ThreadSample* thread);
[[nodiscard]] Sample take_sample(ProcSource* proc, const std::vector<pid_t>& processes);

/// A process of `tree` is not in the sample: a running one may have started it since, and given it what it held.
[[nodiscard]] bool lacks_process(const Sample& sample, const std::vector<pid_t>& tree);

/// Returns `after`. A thread counts as running if it was not blocked since it was read for `before`, or if a thread of
/// its process came or went; not if it only ticks. The rest stood still together, as by stood_still(). nullopt: a
/// sample is not whole.
[[nodiscard]] std::optional<Sample> still_part(const Sample& before, const Sample& after);

/// True: every thread but those that tick was blocked from the time it was read for `before` until it was read for
/// `after`, and no other thread came or went. So one instant exists at which all of them were blocked together. This
/// holds for hidden threads too, because every user may see whether a thread runs.
[[nodiscard]] bool stood_still(const Sample& before, const Sample& after);

}  // namespace mprun
