// Counts the kinds of events in the schedules, to show that the interesting ones occurred.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace mprun::simulation {

enum class Seen : std::size_t {
  kSchedules,
  kSteps,
  kSessions,
  kCrashes,
  kLostTails,
  kEndedOk,
  kEndedFailed,
  kEndedCancelled,
  kRetriesOfErrors,
  kRetriesOfDeaths,
  kRetriesOfLimits,
  kRetriesOfHangs,
  kRetriesOfMemory,
  kGroupRestarts,
  kHeldResults,
  kLeaderRestarts,
  kTriedAlone,
  kFailedStarts,
  kSkippedTasks,
  kDeathsStarting,
  kDeathsReady,
  kDeathsMidTask,
  kDeathsRetiring,
  kStartFailures,
  kLaunchFailures,
  kSpawnFailures,
  kHangs,
  kHangsFound,
  kTooLarge,
  kJobsHung,
  kLateResults,
  kTermIgnored,
  kTermRaised,
  kKilledAfterGrace,
  kTasksTakenBack,
  kFirstInterrupts,
  kSecondInterrupts,
  kFullDisks,
  kErrorStops,
  kFailedRanks,
  kTaskLimits,
  kJoinLimits,
  kJobLimits,
  kWorkersUsedUp,
  kInputWaits,
  kEmptyReads,
  kClockJumps,
  kStoppedAndResumed,
  kDuplicates,
  kBigJobs,
  kCount
};

inline constexpr std::array<const char*, static_cast<std::size_t>(Seen::kCount)> kSeenNames = {
    "schedules",
    "steps",
    "sessions",
    "crashes of mprun",
    "lost journal tails",
    "tasks ended ok",
    "tasks ended failed",
    "tasks ended cancelled",
    "retries of errors",
    "retries of deaths",
    "retries of limits",
    "retries of hangs",
    "retries of too large ones",
    "restarts of ranks",
    "held results",
    "restarts of other shards",
    "tried alone",
    "failed starts",
    "tasks skipped",
    "deaths while starting",
    "deaths between tasks",
    "deaths in a task",
    "deaths while retiring",
    "start failures",
    "launch failures",
    "spawn failures",
    "hangs",
    "hangs found",
    "workers too large",
    "jobs hung",
    "late results",
    "TERM ignored",
    "TERM raised in the task",
    "killed after grace",
    "tasks taken back",
    "first interrupts",
    "second interrupts",
    "full disks",
    "stops by error",
    "failed ranks",
    "task limits",
    "join limits",
    "job limits",
    "workers used up",
    "waits for input",
    "empty reads",
    "clock jumps",
    "stopped and continued",
    "duplicate messages",
    "big jobs"};

struct Stats {
  std::array<std::uint64_t, static_cast<std::size_t>(Seen::kCount)> counts{};
  void saw(Seen what, std::uint64_t times = 1) { counts[static_cast<std::size_t>(what)] += times; }
  [[nodiscard]] std::uint64_t of(Seen what) const { return counts[static_cast<std::size_t>(what)]; }
  void add(const Stats& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      text += (text.empty() ? "" : ", ") + std::to_string(counts[i]) + " " + kSeenNames[i];
    }
    return text;
  }
};

}  // namespace mprun::simulation
