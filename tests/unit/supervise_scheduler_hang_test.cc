// The scheduler's answers to a worker, or a whole job, that hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>

#include "scheduler_driver.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A worker that is killed because it hangs, and reports how many of its tasks it had not begun.
std::vector<Action> hang_and_take_back(Driver* driver, int slot, std::uint32_t not_begun) {
  const auto actions = driver->send(event::WorkerHung{slot});
  const auto signals = all<action::Signal>(actions);
  EXPECT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals.at(0).slot, slot);
  EXPECT_EQ(signals.at(0).signal, SIGKILL) << "it can take notice of no other";
  EXPECT_EQ(signals.at(0).cause, Cause::kHang);
  EXPECT_EQ(all<action::TakeBack>(actions).size(), not_begun == 0 ? 0U : 1U);
  if (not_begun > 0) {
    EXPECT_THAT(assigned(driver->send(event::TakenBack{slot, not_begun}), slot), IsEmpty());
  }
  return driver->send(event::WorkerGone{slot, true});
}

TEST(SchedulerHang, HungWorkerIsKilledAndItsTaskTriedAgain) {
  Policy policy = workers(1);
  policy.chunk_size = 3;
  policy.retries_on_death = 0;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{3, false});
  driver.send(event::WorkerReady{0});
  auto actions = hang_and_take_back(&driver, 0, 2);
  ASSERT_EQ(all<action::RetryTask>(actions).size(), 1U);
  EXPECT_EQ(all<action::RetryTask>(actions)[0].task.task, 0U);
  EXPECT_EQ(all<action::RetryTask>(actions)[0].cause, Cause::kHang);
  EXPECT_EQ(all<action::StartWorker>(actions).size(), 1U);
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kNone);
  const auto assigns = all<action::Assign>(driver.send(event::WorkerReady{0}));
  ASSERT_EQ(assigns.size(), 1U);
  std::map<TaskId, int> attempts;
  for (const TaskAttempt& task : assigns[0].tasks) attempts[task.task] = task.attempt;
  EXPECT_EQ(attempts, (std::map<TaskId, int>{{0, 2}, {1, 1}, {2, 1}})) << "what had not begun loses no attempt";
}

TEST(SchedulerHang, HangsHaveABoundOfTheirOwn) {
  for (const int retries : {0, 1, 3}) {
    Policy policy = workers(1);
    policy.retries_on_hang = retries;
    policy.retries_on_death = policy.retries_on_error = 9;
    Driver driver(policy);
    driver.send(event::Begin{});
    driver.send(event::InputsRead{1, true});
    for (int attempt = 1; attempt <= retries; ++attempt) {
      driver.send(event::WorkerReady{0});
      EXPECT_EQ(all<action::RetryTask>(hang_and_take_back(&driver, 0, 0)).size(), 1U) << attempt;
    }
    driver.send(event::WorkerReady{0});
    const auto ended = all<action::EndTask>(hang_and_take_back(&driver, 0, 0));
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].status, TaskStatus::kFailed);
    EXPECT_EQ(ended[0].cause, Cause::kHang);
    EXPECT_EQ(ended[0].task.attempt, retries + 1);
    EXPECT_TRUE(driver.scheduler().over());
  }
}

TEST(SchedulerHang, HungCommandIsTriedAgainInItsSlot) {
  Policy policy = workers(1);
  policy.process_per_task = true;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{2, true});
  driver.send(event::WorkerReady{0});
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{0})).at(0).signal, SIGKILL);
  const auto actions = driver.send(event::TaskDone{0, true, 1});
  EXPECT_EQ(all<action::RetryTask>(actions).at(0).cause, Cause::kHang);
  EXPECT_THAT(assigned(actions, 0), ElementsAre(0)) << "the next process has a clean sheet";
  const auto ended = all<action::EndTask>(driver.send(event::TaskDone{0, true, 1}));
  EXPECT_EQ(ended.at(0).cause, Cause::kNone) << "that was an error of its own";
}

TEST(SchedulerHang, HungWorkerThatHasNoTaskIsReplaced) {
  Driver driver(workers(2));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, false});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});  // nothing is left for it
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{1})).at(0).signal, SIGKILL);
  const auto actions = driver.send(event::WorkerGone{1, false});
  EXPECT_EQ(all<action::StartWorker>(actions).at(0).slot, 1);
  EXPECT_THAT(all<action::RetryTask>(actions), IsEmpty());
  EXPECT_THAT(all<action::EndTask>(actions), IsEmpty());
}

TEST(SchedulerHang, HungWorkerThatRetiresIsKilledWithoutWaitingForTheJoinLimit) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  EXPECT_EQ(all<action::Retire>(driver.send(event::TaskDone{0, false, 1})).size(), 1U);
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{0})).at(0).signal, SIGKILL);
  driver.pass(1000);
  EXPECT_THAT(all<action::Signal>(driver.send(event::Tick{})), IsEmpty()) << "it is killed once";
  driver.send(event::WorkerGone{0, false});
  EXPECT_TRUE(driver.scheduler().over());
  EXPECT_EQ(driver.scheduler().counts().ok, 1U);
}

TEST(SchedulerHang, WorkerThatIsGoneCannotHang) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.send(event::TaskDone{0, false, 1});
  driver.send(event::WorkerGone{0, false});
  EXPECT_THAT(driver.send(event::WorkerHung{0}), IsEmpty());
}

TEST(SchedulerHang, HungRankStopsTheJob) {
  Policy policy = ranks(3, 5);
  policy.retries_on_hang = 0;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{3, true});
  for (int rank = 0; rank < 3; ++rank) driver.send(event::WorkerReady{rank});
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{1})).at(0).signal, SIGKILL);
  const auto actions = driver.send(event::TaskDone{1, true, 1});
  EXPECT_THAT(all<action::RetryTask>(actions), IsEmpty());
  EXPECT_EQ(all<action::EndTask>(actions).at(0).cause, Cause::kHang);
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kHang);
  std::set<int> signalled;
  for (const auto& signal : all<action::Signal>(actions)) signalled.insert(signal.slot);
  EXPECT_EQ(signalled, (std::set<int>{0, 2}));
}

TEST(SchedulerHang, HungJobIsKilledAsAWhole) {
  Policy policy = workers(3);
  policy.chunk_size = 2;
  policy.retries_on_hang = 5;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{4, false});
  driver.send(event::WorkerReady{0});
  driver.send(event::WorkerReady{1});
  auto actions = driver.send(event::JobHung{});  // the third is still starting
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kHang);
  std::set<int> killed;
  for (const auto& signal : all<action::Signal>(actions)) {
    if (signal.signal == SIGKILL) killed.insert(signal.slot);
  }
  EXPECT_EQ(killed, (std::set<int>{0, 1, 2}));
  for (const int slot : {0, 1}) {
    EXPECT_THAT(assigned(driver.send(event::TakenBack{slot, 1}), slot), IsEmpty());
    actions = driver.send(event::WorkerGone{slot, true});
    EXPECT_THAT(all<action::RetryTask>(actions), IsEmpty());
    EXPECT_THAT(all<action::StartWorker>(actions), IsEmpty());
    EXPECT_EQ(all<action::EndTask>(actions).at(0).cause, Cause::kHang);
  }
  EXPECT_FALSE(driver.scheduler().over());
  driver.send(event::WorkerGone{2, false});
  EXPECT_TRUE(driver.scheduler().over());
}

TEST(SchedulerHang, FirstCauseOfAnEndStands) {
  Policy policy = workers(1);
  policy.task_limit = kNanosPerSecond;
  policy.retries_on_death = 0;
  Driver driver(policy);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{1, true});
  driver.send(event::WorkerReady{0});
  driver.pass(1.1);
  driver.send(event::Tick{});
  EXPECT_EQ(all<action::Signal>(driver.send(event::WorkerHung{0})).at(0).signal, SIGKILL) << "its grace is of no use";
  const auto ended = all<action::EndTask>(driver.send(event::WorkerGone{0, true}));
  EXPECT_EQ(ended.at(0).cause, Cause::kTaskLimit);
}

}  // namespace
}  // namespace mprun
