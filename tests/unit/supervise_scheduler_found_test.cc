// Faults that the simulator (tests/simulation) has found in the scheduler, one test each.
#include <gtest/gtest.h>

#include <csignal>

#include "scheduler_driver.h"

namespace mprun {
namespace {

constexpr Nanos kTaskTime = kNanosPerMilli;

/// Workers that are ready and have each run a task of a millisecond, so more than one is assigned at once.
void warm_up(Driver* driver, int count) {
  driver->send(event::Begin{});
  driver->send(event::InputsRead{static_cast<std::uint64_t>(count), false});
  for (int slot = 0; slot < count; ++slot) driver->send(event::WorkerReady{slot});
  for (int slot = 0; slot < count; ++slot) driver->send(event::TaskDone{slot, false, kTaskTime});
}

TEST(SchedulerFound, AFewNewInputsAreSharedByAllIdleWorkers) {
  Driver driver(workers(3));
  warm_up(&driver, 3);
  const auto actions = driver.send(event::InputsRead{3, false});
  EXPECT_EQ(all<action::Assign>(actions).size(), 3U);
  // Otherwise they were taken back from the first for the others, and assigned to it again, without end.
  EXPECT_TRUE(all<action::TakeBack>(actions).empty());
}

TEST(SchedulerFound, NothingIsGivenToAWorkerWhoseAnswerIsAwaited) {
  Driver driver(workers(2));
  warm_up(&driver, 2);
  driver.send(event::InputsRead{4, false});  // two each
  driver.pass(1);
  driver.send(event::TaskDone{0, false, kTaskTime});
  const auto actions = driver.send(event::TaskDone{0, false, kTaskTime});
  const auto ticked = driver.send(event::Tick{});
  ASSERT_EQ(all<action::TakeBack>(actions).size() + all<action::TakeBack>(ticked).size(), 1U);
  // New inputs come first: the number in the answer counts the last tasks before them.
  EXPECT_TRUE(assigned(driver.send(event::InputsRead{2000, false}), 1).empty());
  EXPECT_FALSE(assigned(driver.send(event::TakenBack{1, 1}), 1).empty());
}

TEST(SchedulerFound, TheLastTaskGivesNoNewTimeToAWorkerThatIsEnded) {
  Policy policy = workers(2);
  policy.task_limit = kNanosPerSecond;
  policy.grace = kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});
  driver.pass(1);
  ASSERT_EQ(all<action::Signal>(driver.send(event::Tick{})).size(), 2U);
  driver.send(event::TaskDone{0, false, kTaskTime});  // it ignores TERM, and has nothing left to do
  driver.send(event::WorkerGone{1, true});
  driver.send(event::WorkerReady{1});
  const auto last = driver.send(event::TaskDone{1, false, kTaskTime});
  ASSERT_EQ(all<action::Retire>(last).size(), 1U);
  EXPECT_EQ(all<action::Retire>(last)[0].slot, 1);
  driver.pass(1);
  const auto signals = all<action::Signal>(driver.send(event::Tick{}));
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals[0].slot, 0);
  EXPECT_EQ(signals[0].signal, SIGKILL);
}

TEST(SchedulerFound, WhatWaitsForItsRetryCountsAsRead) {
  Policy policy = workers(1);
  policy.retries_on_error = 1;
  policy.retry_delay = 3600 * kNanosPerSecond;
  Driver driver(policy);
  std::uint64_t asked = 0;
  const auto look = [&asked](const std::vector<Action>& actions) {
    for (const auto& read : all<action::ReadInputs>(actions)) asked = read.count;
  };
  look(driver.send(event::Begin{}));
  driver.send(event::WorkerReady{0});
  for (int i = 0; i < 50'000; ++i) {
    if (asked > 0) look(driver.send(event::InputsRead{std::exchange(asked, 0), false}));
    if (driver.scheduler().in_flight(0) > 0) look(driver.send(event::TaskDone{0, true, kTaskTime}));
  }
  EXPECT_LT(driver.scheduler().waiting(), 20'000U);
}

}  // namespace
}  // namespace mprun
