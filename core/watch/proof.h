// Proof: a judgement of one sample, with the evidence it rests on. Made by the watcher, by an inspection, and for a
// limit that has passed; explain.h turns it into a report.
#pragma once

#include <memory>

#include "watch/hang.h"
#include "watch/judge/judge.h"

namespace mprun {

/// What was proved or found, with the evidence it rests on.
struct Proof {
  std::unique_ptr<Sample> sample;
  std::unique_ptr<TreeSnapshot> snapshot;
  Judgement judgement;
  HangVerdict verdict = HangVerdict::kDeadlock;
  Nanos last_moved = 0;               ///< monotonic: when a thread was last seen to have run; 0: not known
  std::map<pid_t, Nanos> last_moves;  ///< the same for each thread, if it is known
  /// For a stall: it would be a deadlock but for this ("process 12 catches signal 15 (by node), whose handler ...").
  std::string but_for;
  bool needs_no_signal = false;           ///< for a stall: assumes that no signal comes, among others
  bool needs_no_client = false;           ///< the same, that no process outside uses what a server would wait for
  bool needs_no_limit = false;            ///< the same, that no time limit passes
  bool needs_no_beat = false;             ///< the same, that threads that only beat let no other go on
  bool needs_only_timers = false;         ///< the same, only that timers whose handlers do nothing release no thread
  bool needs_only_idle_runtimes = false;  ///< the same, only that runtimes that wake up by themselves do nothing
  bool is_early = false;                  ///< for a stall: found before the limit, so that it may be idle
  bool was_proved = false;                ///< the same, of what was proved but perhaps not reported, as it may be idle
  bool is_due = false;                    ///< for an early one: the limit is so short that it has passed all the same
  std::map<pid_t, double> wakeups;        ///< for a stall: how often a second each thread gets a CPU
  pid_t lost_helper = 0;  ///< for a stall: the process whose pool no longer takes results (lost_result.h)
  pid_t lost_task = 0;    ///< the same, whose pool has lost a task
  pid_t lost_poller = 0;  ///< the same, of which no thread listens for an answer (lost_poller.h)
  pid_t respawner = 0;    ///< for a stall: the process whose children die one after the other
};

/// Judges a sample. `boundary`: as it is while the threads of the sample stand still.
[[nodiscard]] Proof judge_sample(ProcSource* proc, std::unique_ptr<Sample> sample, TreeBoundary boundary);

/// The processes that shells run as their commands, where it is known which of their children these are.
[[nodiscard]] std::set<pid_t> commands_of_shells(const Judgement& judgement);

/// True if a main thread waits for the end of stuck processes. A shell does not count: the command that it
/// waits for may be idle.
[[nodiscard]] bool is_waited_for(const Judgement& judgement);

/// True if only some processes are stuck, and no main thread waits for their end: they may be meant to wait.
[[nodiscard]] bool is_unawaited_part(const Judgement& judgement);

/// After this time, mprun reports what would be a deadlock but for a few assumptions.
inline constexpr Nanos kEarlyStall = 3 * kNanosPerSecond;

/// What a stall assumes that is reported before its limit of `stall` has passed, and one that has lasted so long.
[[nodiscard]] Assumptions assumptions_before(Nanos stall);
[[nodiscard]] Assumptions assumptions_after_stall();

/// The stall that the sample shows if the assumptions hold, perhaps an unawaited part; nullopt: it shows none, or needs
/// none of them. One sample is enough, as nothing is proved.
[[nodiscard]] std::optional<Proof> judge_assuming(ProcSource* proc, std::unique_ptr<Sample> sample,
                                                  TreeBoundary boundary, Assumptions assumptions);

}  // namespace mprun
