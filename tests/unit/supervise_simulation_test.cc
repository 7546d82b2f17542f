// The scheduler under a few thousand schedules of the simulator (tests/simulation), and the simulator's own parts.
#include <gtest/gtest.h>

#include <sstream>

#include "replay.h"
#include "schedule.h"
#include "supervise/event_log.h"

namespace mprun::simulation {
namespace {

TEST(Simulation, ThousandsOfSchedulesKeepTheRules) {
  Stats stats;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Choices choices(seed);
    const auto failure = run_schedule(&choices, &stats, nullptr);
    ASSERT_FALSE(failure) << *failure << ": mprun_simulation --shrink --one " << seed;
  }
  for (const Seen kind :
       {Seen::kCrashes, Seen::kRetriesOfHangs, Seen::kTasksTakenBack, Seen::kSecondInterrupts, Seen::kFullDisks,
        Seen::kJoinLimits, Seen::kInputWaits, Seen::kGroupRestarts, Seen::kHeldResults, Seen::kLeaderRestarts}) {
    EXPECT_GT(stats.of(kind), 0U) << kSeenNames[static_cast<std::size_t>(kind)];
  }
}

TEST(Simulation, TheSameChoicesAreTheSameSchedule) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Stats stats;
    std::string first;
    std::string second;
    Choices choices(seed);
    ASSERT_FALSE(run_schedule(&choices, &stats, &first));
    Choices again(choices.list());
    ASSERT_FALSE(run_schedule(&again, &stats, &second));
    ASSERT_EQ(first, second);
    std::istringstream log(first);
    const auto replayed = replay(log);
    ASSERT_TRUE(replayed) << replayed.error().message;
    EXPECT_GT(replayed->actions, 0U);
    EXPECT_FALSE(replayed->torn);
  }
}

std::string short_log() {
  Policy policy;
  return std::string(kEventLogHead) + "\n" + to_text(policy) +
         "\n5 Begin\n  ReadInputs count=8192\n  StartWorker slot=0\n6 InputsRead count=1 ended=1 first=0\n"
         "7 WorkerReady slot=0\n  Assign slot=0 tasks=0:1\n";
}

TEST(Simulation, ReplayFindsAnotherAction) {
  std::string text = short_log();
  std::istringstream same(text);
  const auto replayed = replay(same);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(replayed->events, 3U);
  text.replace(text.find("tasks=0:1"), 9, "tasks=0:2");
  std::istringstream other(text);
  const auto different = replay(other);
  ASSERT_FALSE(different);
  EXPECT_EQ(different.error().message.rfind("line 8: ", 0), 0U) << different.error().message;
}

TEST(Simulation, ReplayTakesALogThatWasTorn) {
  const std::string text = short_log();
  for (std::size_t length = text.find("5 Begin"); length < text.size(); ++length) {
    std::istringstream torn(text.substr(0, length));
    EXPECT_TRUE(replay(torn)) << text.substr(0, length);
  }
}

TEST(Simulation, ReplayRefusesWhatIsNoLog) {
  for (const char* text : {"", "x\n", "5 Begin\n", "mprun-events 3\nno policy\n"}) {
    std::istringstream log(text);
    EXPECT_FALSE(replay(log)) << text;
  }
  std::string text = short_log();
  text.replace(text.find("Ready slot=0"), 12, "Ready slot=7");
  std::istringstream log(text);
  EXPECT_FALSE(replay(log));
}

}  // namespace
}  // namespace mprun::simulation
