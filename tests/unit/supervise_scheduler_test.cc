// The scheduler's decisions, case by case: no clock, no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "scheduler_driver.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Scheduler, StartsAllWorkersAndReadsInputs) {
  Driver driver(workers(3));
  const auto actions = driver.send(event::Begin{});
  EXPECT_EQ(all<action::StartWorker>(actions).size(), 3U);
  EXPECT_EQ(all<action::ReadInputs>(actions).size(), 1U);
  EXPECT_EQ(driver.scheduler().alive(), 3);
}

TEST(Scheduler, HandsOutInOrderAndRetiresAtTheEnd) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, true});
  EXPECT_THAT(assigned(driver.send(event::WorkerReady{0}), 0), ElementsAre(0));
  auto actions = driver.send(event::TaskDone{0, false, kNanosPerSecond});
  EXPECT_THAT(assigned(actions, 0), ElementsAre(1));
  EXPECT_EQ(all<action::EndTask>(actions).at(0).status, TaskStatus::kOk);
  actions = driver.send(event::TaskDone{0, false, kNanosPerSecond});
  EXPECT_EQ(all<action::Retire>(actions).size(), 1U);
  EXPECT_FALSE(driver.scheduler().over());
  driver.send(event::WorkerGone{0, false});
  EXPECT_TRUE(driver.scheduler().over());
  EXPECT_EQ(driver.scheduler().counts().ok, 2U);
}

TEST(Scheduler, SaysWhatEachWorkerDoes) {
  Driver driver(workers(1));
  EXPECT_EQ(driver.scheduler().state(0), std::nullopt);
  driver.send(event::Begin{});
  EXPECT_EQ(driver.scheduler().state(0), WorkerState::kStarting);
  driver.pass(2);
  driver.send(event::WorkerReady{0});
  EXPECT_EQ(driver.scheduler().state(0), WorkerState::kIdle);
  driver.pass(1);
  driver.send(event::InputsRead{1, true});
  EXPECT_EQ(driver.scheduler().state(0), WorkerState::kBusy);
  EXPECT_EQ(driver.scheduler().task_started(0), 4 * kNanosPerSecond);
  driver.send(event::TaskDone{0, false, kNanosPerSecond});
  EXPECT_EQ(driver.scheduler().state(0), WorkerState::kEnding);
  driver.send(event::WorkerGone{0});
  EXPECT_EQ(driver.scheduler().state(0), std::nullopt);
}

TEST(Scheduler, AWorkerThatIsKilledEnds) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::WorkerReady{0});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerHung{0});
  EXPECT_EQ(driver.scheduler().state(0), WorkerState::kEnding);
}

TEST(Scheduler, ShortTasksAreQueuedByTheHundred) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{8192, false});
  driver.send(event::WorkerReady{0});
  const auto actions = driver.send(event::TaskDone{0, false, 10'000});  // 10 microseconds
  EXPECT_GT(assigned(actions, 0).size(), 1000U);
}

TEST(Scheduler, OfSharedInputsItAsksForWhatItNeedsSoon) {
  Policy policy = workers(2);
  policy.shares_inputs = true;
  Driver driver(policy);
  auto asked = all<action::ReadInputs>(driver.send(event::Begin{}));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].count, 2U) << "one a worker";
  driver.send(event::InputsRead{2, false, 70});
  EXPECT_THAT(assigned(driver.send(event::WorkerReady{0}), 0), ElementsAre(70));
  EXPECT_THAT(assigned(driver.send(event::WorkerReady{1}), 1), ElementsAre(71));
  asked = all<action::ReadInputs>(driver.send(event::TaskDone{0, false, 10 * kNanosPerSecond}));
  ASSERT_EQ(asked.size(), 1U) << "at once";
  EXPECT_EQ(asked[0].count, 1U) << "for the worker that is idle";
  EXPECT_THAT(assigned(driver.send(event::InputsRead{1, false, 3}), 0), ElementsAre(3)) << "tasks come in any order";
  EXPECT_THAT(all<action::ReadInputs>(driver.send(event::Tick{})), IsEmpty()) << "nothing ahead of long tasks";
}

TEST(Scheduler, OfSharedInputsShortTasksAreAskedForAhead) {
  Policy policy = workers(1);
  policy.shares_inputs = true;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::WorkerReady{0});
  driver.send(event::InputsRead{1, false});
  const auto asked = all<action::ReadInputs>(driver.send(event::TaskDone{0, false, kNanosPerSecond / 100}));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].count, 50U) << "half a second's";
}

TEST(Scheduler, LongTasksAreHandedOutOneAhead) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{100, false});
  driver.send(event::WorkerReady{0});
  EXPECT_EQ(assigned(driver.send(event::TaskDone{0, false, kNanosPerSecond}), 0).size(), 2U);
}

TEST(Scheduler, IdleWorkerTakesBackWhatALongTaskHoldsUp) {
  Policy policy = workers(2);
  policy.chunk_size = 4;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{4, false});
  driver.send(event::WorkerReady{0});
  driver.send(event::InputsRead{0, true});
  driver.pass(1);
  auto actions = driver.send(event::WorkerReady{1});
  if (all<action::TakeBack>(actions).empty()) actions = driver.send(event::Tick{});
  ASSERT_EQ(all<action::TakeBack>(actions).size(), 1U);
  EXPECT_EQ(all<action::TakeBack>(actions)[0].slot, 0);
  actions = driver.send(event::TakenBack{0, 3});
  EXPECT_FALSE(assigned(actions, 1).empty());
  EXPECT_THAT(assigned(actions, 0), IsEmpty());
}

TEST(Scheduler, DeathRetriesTheRunningTaskAndReturnsTheOthersFree) {
  Policy policy = workers(1);
  policy.chunk_size = 3;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{3, false});
  driver.send(event::WorkerReady{0});
  auto actions = driver.send(event::WorkerGone{0, true});
  EXPECT_EQ(all<action::RetryTask>(actions).at(0).task.task, 0U);
  EXPECT_EQ(all<action::RetryTask>(actions).at(0).cause, Cause::kDeath);
  EXPECT_EQ(all<action::StartWorker>(actions).size(), 1U);
  actions = driver.send(event::WorkerReady{0});
  auto assigns = all<action::Assign>(actions);
  ASSERT_EQ(assigns.size(), 1U);
  ASSERT_EQ(assigns[0].tasks.size(), 1U);  // the suspect, alone
  EXPECT_EQ(assigns[0].tasks[0].task, 0U);
  EXPECT_EQ(assigns[0].tasks[0].attempt, 2);
  assigns = all<action::Assign>(driver.send(event::TaskDone{0, false, kNanosPerSecond}));
  ASSERT_EQ(assigns.size(), 1U);
  EXPECT_EQ(assigns[0].tasks[0].task, 1U);  // innocent, still its first attempt
  EXPECT_EQ(assigns[0].tasks[0].attempt, 1);
}

TEST(Scheduler, SecondDeathFailsTheTask) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerGone{0, true});
  driver.send(event::WorkerReady{0});
  const auto actions = driver.send(event::WorkerGone{0, true});
  EXPECT_EQ(all<action::EndTask>(actions).at(0).status, TaskStatus::kFailed);
  EXPECT_TRUE(driver.scheduler().over());
}

TEST(Scheduler, ErrorIsRetriedOnlyWhenAsked) {
  for (const int retries : {0, 2}) {
    Policy policy = workers(1);
    policy.retries_on_error = retries;
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{1, true});
    driver.send(event::WorkerReady{0});
    for (int i = 0; i < retries; ++i) {
      EXPECT_EQ(all<action::RetryTask>(driver.send(event::TaskDone{0, true, 1})).size(), 1U);
    }
    EXPECT_EQ(all<action::EndTask>(driver.send(event::TaskDone{0, true, 1})).at(0).status, TaskStatus::kFailed);
  }
}

TEST(Scheduler, RetryWaitsForItsDelay) {
  Policy policy = workers(1);
  policy.retries_on_error = 1;
  policy.retry_delay = 2 * kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  EXPECT_THAT(assigned(driver.send(event::TaskDone{0, true, 1}), 0), IsEmpty());
  driver.pass(1);
  EXPECT_THAT(assigned(driver.send(event::Tick{}), 0), IsEmpty());
  driver.pass(1.5);
  EXPECT_THAT(assigned(driver.send(event::Tick{}), 0), ElementsAre(0));
}

TEST(Scheduler, TaskLimitTerminatesThenKills) {
  Policy policy = workers(1);
  policy.task_limit = kNanosPerSecond;
  policy.grace = kNanosPerSecond;
  policy.retries_on_death = 0;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.pass(0.5);
  EXPECT_THAT(driver.send(event::Tick{}), IsEmpty());
  driver.pass(0.6);
  EXPECT_EQ(all<action::Signal>(driver.send(event::Tick{})).at(0).signal, SIGTERM);
  driver.pass(0.5);
  EXPECT_THAT(all<action::Signal>(driver.send(event::Tick{})), IsEmpty());
  driver.pass(0.6);
  EXPECT_EQ(all<action::Signal>(driver.send(event::Tick{})).at(0).signal, SIGKILL);
  EXPECT_THAT(all<action::Signal>(driver.send(event::Tick{})), IsEmpty());
  const auto ended = all<action::EndTask>(driver.send(event::WorkerGone{0, true}));
  EXPECT_EQ(ended.at(0).cause, Cause::kTaskLimit);
}

TEST(Scheduler, StoppedTimeCountsForNoLimit) {
  Policy policy = workers(1);
  policy.task_limit = kNanosPerSecond;
  policy.job_limit = 2 * kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.pass(100);
  driver.send(event::Resumed{from_seconds(100)});
  EXPECT_THAT(driver.send(event::Tick{}), IsEmpty());
}

TEST(Scheduler, InterruptLetsRunningTasksFinishWithinGrace) {
  Policy policy = workers(2);
  policy.chunk_size = 2;
  policy.grace = kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{10, false});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});
  auto actions = driver.send(event::Interrupt{});
  EXPECT_EQ(all<action::TakeBack>(actions).size(), 2U);
  EXPECT_THAT(all<action::Signal>(actions), IsEmpty());
  driver.send(event::TakenBack{0, 1});
  driver.send(event::TakenBack{1, 1});
  actions = driver.send(event::TaskDone{0, false, 1});
  EXPECT_THAT(assigned(actions, 0), IsEmpty());
  EXPECT_EQ(all<action::Retire>(actions).at(0).slot, 0);
  driver.send(event::WorkerGone{0, false});
  driver.pass(1.1);
  actions = driver.send(event::Tick{});
  ASSERT_EQ(all<action::Signal>(actions).size(), 1U);
  EXPECT_EQ(all<action::Signal>(actions)[0].slot, 1);
  const auto ended = all<action::EndTask>(driver.send(event::WorkerGone{1, true}));
  EXPECT_EQ(ended.at(0).status, TaskStatus::kCancelled);
  EXPECT_TRUE(driver.scheduler().over());
}

TEST(Scheduler, ConditionsOfAStopHoldForWorkersThatEndToo) {
  Policy policy = workers(1);
  policy.job_limit = kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::TaskDone{0, false, 1});  // now it is retiring, but does not exit
  driver.pass(1.1);
  EXPECT_EQ(all<action::Signal>(driver.send(event::Tick{})).at(0).cause, Cause::kJobLimit);
}

TEST(Scheduler, TaskThatEndsInItsGraceIsATimeoutAndHarmsNoOther) {
  Policy policy = workers(1);
  policy.chunk_size = 2;
  policy.task_limit = kNanosPerSecond;
  policy.retries_on_death = 0;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, false});
  driver.send(event::WorkerReady{0});
  driver.pass(1.1);
  auto actions = driver.send(event::Tick{});
  EXPECT_EQ(all<action::TakeBack>(actions).size(), 1U);
  EXPECT_EQ(all<action::Signal>(actions).at(0).signal, SIGTERM);
  driver.send(event::TakenBack{0, 1});
  actions = driver.send(event::TaskDone{0, true, kNanosPerSecond});
  EXPECT_EQ(all<action::EndTask>(actions).at(0).cause, Cause::kTaskLimit);
  EXPECT_THAT(assigned(actions, 0), IsEmpty());
  driver.send(event::WorkerGone{0, false});
  const auto assigns = all<action::Assign>(driver.send(event::WorkerReady{0}));
  EXPECT_EQ(assigns.at(0).tasks.at(0).attempt, 1);
}

// A batch system that ends a job signals all its processes.
TEST(Scheduler, AWorkerThatDiesOfASignalWhileInterruptedHasNotFailed) {
  for (const bool from_outside : {true, false}) {
    Policy policy = workers(1);
    policy.retries_on_death = 0;
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{1, true});
    driver.send(event::WorkerReady{0});
    driver.send(event::Interrupt{});
    const auto ended = all<action::EndTask>(driver.send(event::WorkerGone{0, true, from_outside}));
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].status, from_outside ? TaskStatus::kCancelled : TaskStatus::kFailed);
  }
}

// The next session tries it again, as it would have been.
TEST(Scheduler, ATaskThatFailsWithAttemptsLeftWhileTheJobStopsHasNotFailed) {
  for (const bool left : {true, false}) {
    for (const bool dies : {true, false}) {
      Policy policy = workers(1);
      policy.retries_on_error = policy.retries_on_death = left ? 1 : 0;
      Driver driver(policy);
      driver.send(event::Begin{});
      driver.send(event::InputsRead{1, true});
      driver.send(event::WorkerReady{0});
      driver.send(event::Interrupt{});
      const auto actions = dies ? driver.send(event::WorkerGone{0, true}) : driver.send(event::TaskDone{0, true, 1});
      const auto ended = all<action::EndTask>(actions);
      ASSERT_EQ(ended.size(), 1U);
      EXPECT_EQ(ended[0].status, left ? TaskStatus::kCancelled : TaskStatus::kFailed);
      EXPECT_EQ(ended[0].cause, dies ? Cause::kDeath : Cause::kNone);
    }
  }
}

TEST(Scheduler, ACommandThatDiesOfASignalWhileInterruptedHasNotFailed) {
  for (const bool from_outside : {true, false}) {
    Policy policy = workers(1);
    policy.process_per_task = true;
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{1, true});
    driver.send(event::WorkerReady{0});
    driver.send(event::Interrupt{});
    const auto ended = all<action::EndTask>(driver.send(event::TaskDone{0, true, 1, from_outside}));
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].status, from_outside ? TaskStatus::kCancelled : TaskStatus::kFailed);
  }
}

TEST(Scheduler, SecondInterruptKills) {
  Driver driver(workers(2));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{10, false});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});
  driver.send(event::Interrupt{});
  const auto signals = all<action::Signal>(driver.send(event::Interrupt{}));
  ASSERT_EQ(signals.size(), 2U);
  EXPECT_EQ(signals[0].signal, SIGKILL);
}

TEST(Scheduler, ErrorStopAndMaxFailuresHandOutNothingMore) {
  for (const bool stop : {true, false}) {
    Policy policy = workers(1);
    policy.stop_on_error = stop;
    if (!stop) policy.max_failures = 1;
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{10, true});
    driver.send(event::WorkerReady{0});
    const auto actions = driver.send(event::TaskDone{0, true, 1});
    EXPECT_THAT(assigned(actions, 0), IsEmpty());
    EXPECT_EQ(driver.scheduler().stopping(), Cause::kErrorStop);
    driver.send(event::WorkerGone{0, false});
    EXPECT_TRUE(driver.scheduler().over());
  }
}

TEST(Scheduler, WorkerThatGetsReadyAfterItsSignalIsKilledAfterTheGrace) {
  Policy policy = workers(2);
  policy.stop_on_error = true;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{10, true});
  driver.send(event::WorkerReady{0});
  const auto signals = all<action::Signal>(driver.send(event::TaskDone{0, true, 1}));
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals[0].signal, SIGTERM);
  driver.send(event::WorkerReady{1});  // it ignored that
  driver.pass(to_seconds(policy.grace));
  const auto kills = all<action::Signal>(driver.send(event::Tick{}));
  ASSERT_EQ(kills.size(), 1U);
  EXPECT_EQ(kills[0].slot, 1);
  EXPECT_EQ(kills[0].signal, SIGKILL);
}

TEST(Scheduler, AfterAnErrorStopInterruptsAndTheJobLimitStillBoundWhatRuns) {
  for (const bool interrupt : {true, false}) {
    Policy policy = workers(2);
    policy.stop_on_error = true;
    if (!interrupt) policy.job_limit = from_seconds(5);
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{2, true});
    driver.send(event::WorkerReady{0});
    driver.send(event::WorkerReady{1});
    driver.send(event::TaskDone{0, true, 1});  // the other one's task goes on
    driver.send(event::WorkerGone{0, false});
    if (interrupt) driver.send(event::Interrupt{});
    driver.pass(interrupt ? to_seconds(policy.grace) : 5);
    const auto signals = all<action::Signal>(driver.send(event::Tick{}));
    ASSERT_EQ(signals.size(), 1U);
    EXPECT_EQ(signals[0].slot, 1);
    EXPECT_EQ(signals[0].signal, SIGTERM);
    EXPECT_EQ(driver.scheduler().stopping(), interrupt ? Cause::kInterrupted : Cause::kJobLimit);
  }
}

TEST(Scheduler, RankFailureEndsTheOthersAtOnce) {
  Driver driver(ranks(3, 0));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{3, true});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(assigned(driver.send(event::WorkerReady{rank}), rank), ElementsAre(static_cast<TaskId>(rank)));
  }
  const auto signals = all<action::Signal>(driver.send(event::TaskDone{1, true, 1}));
  ASSERT_EQ(signals.size(), 2U);
  EXPECT_EQ(signals[0].signal, SIGTERM);
  const auto ended = all<action::EndTask>(driver.send(event::TaskDone{0, true, 1}));
  EXPECT_EQ(ended.at(0).status, TaskStatus::kCancelled);
  EXPECT_EQ(ended.at(0).cause, Cause::kRankFailed);
}

TEST(Scheduler, RankThatHangsEndsTheOthersWhichDidNot) {
  Driver driver(ranks(2, 0));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, true});
  for (int rank = 0; rank < 2; ++rank) driver.send(event::WorkerReady{rank});
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{1})).at(0).signal, SIGKILL);
  const auto actions = driver.send(event::TaskDone{1, true, 1});
  EXPECT_EQ(all<action::EndTask>(actions).at(0).cause, Cause::kHang);
  EXPECT_EQ(all<action::EndTask>(actions).at(0).status, TaskStatus::kFailed);
  EXPECT_EQ(all<action::Signal>(actions).at(0).slot, 0);
  const auto ended = all<action::EndTask>(driver.send(event::TaskDone{0, true, 1}));
  EXPECT_EQ(ended.at(0).status, TaskStatus::kCancelled);
  EXPECT_EQ(ended.at(0).cause, Cause::kRankFailed);
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kHang);
}

TEST(Scheduler, TasksPerWorkerReplacesTheWorker) {
  Policy policy = workers(1);
  policy.tasks_per_worker = 2;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{5, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::TaskDone{0, false, 1});
  auto actions = driver.send(event::TaskDone{0, false, 1});
  EXPECT_EQ(all<action::Retire>(actions).size(), 1U);
  actions = driver.send(event::WorkerGone{0, false});
  EXPECT_EQ(all<action::StartWorker>(actions).size(), 1U);
}

TEST(Scheduler, WorkersThatDieStartingEndTheJob) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{5, true});
  for (int i = 0; i < 10 && !driver.scheduler().over(); ++i) driver.send(event::WorkerGone{0, false});
  EXPECT_TRUE(driver.scheduler().start_failed());
  EXPECT_TRUE(driver.scheduler().over());
}

TEST(Scheduler, WorkerThatDoesNotExitIsEndedAfterTheJoinLimit) {
  Policy policy = workers(1);
  policy.join_limit = kNanosPerSecond;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::TaskDone{0, false, 1});
  driver.pass(1.1);
  const auto signals = all<action::Signal>(driver.send(event::Tick{}));
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals[0].cause, Cause::kJoinLimit);
}

/// The seconds after which the only task is retried, attempt by attempt.
std::vector<int> delays_of(const Policy& policy) {
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  std::vector<int> delays;
  while (all<action::EndTask>(driver.send(event::TaskDone{0, true, 1})).empty()) {
    int seconds = 0;
    for (; assigned(driver.send(event::Tick{}), 0).empty() && seconds < 1'000'000; ++seconds) driver.pass(1);
    delays.push_back(seconds);
  }
  return delays;
}

TEST(Scheduler, DelaysGrowToTheLongest) {
  Policy policy = workers(1);
  policy.retries_on_error = 5;
  policy.retry_delay = 3 * kNanosPerSecond;
  EXPECT_THAT(delays_of(policy), ElementsAre(3, 3, 3, 3, 3));
  policy.retry_backoff = 2;
  EXPECT_THAT(delays_of(policy), ElementsAre(3, 6, 12, 24, 48));
  policy.retry_max_delay = 20 * kNanosPerSecond;
  EXPECT_THAT(delays_of(policy), ElementsAre(3, 6, 12, 20, 20));
  policy.retries_on_error = 1000;
  policy.retry_backoff = 1000;
  EXPECT_EQ(delays_of(policy).back(), 20);
}

TEST(Scheduler, TheShorterDelayIsOverFirst) {
  Policy policy = workers(2);
  policy.retries_on_error = 5;
  policy.retry_delay = kNanosPerSecond;
  policy.retry_backoff = 10;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});
  driver.send(event::TaskDone{0, true, 1});  // task 0: a second
  driver.pass(1);
  EXPECT_THAT(assigned(driver.send(event::Tick{}), 0), ElementsAre(0));
  driver.send(event::TaskDone{0, true, 1});  // ten seconds
  driver.send(event::TaskDone{1, true, 1});  // task 1: a second
  driver.pass(1);
  EXPECT_THAT(assigned(driver.send(event::Tick{}), 0), ElementsAre(1));
}

}  // namespace
}  // namespace mprun
