// Tasks whose workers die: run alone, blamed if they die then too, and kept apart from the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler_driver.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two workers, four tasks each.
class SuspectTest : public ::testing::Test {
 protected:
  static Policy policy(int retries) {
    Policy wanted = workers(2);
    wanted.chunk_size = 4;
    wanted.retries_on_death = retries;
    return wanted;
  }
  void begin(int retries) {
    driver_.emplace(policy(retries));
    driver_->send(event::Begin{});
    driver_->send(event::InputsRead{12, true});
    EXPECT_EQ(assigned(driver_->send(event::WorkerReady{0}), 0).size(), 4U);
    EXPECT_EQ(assigned(driver_->send(event::WorkerReady{1}), 1).size(), 4U);
  }
  std::vector<Action> done(int slot) { return driver_->send(event::TaskDone{slot, false, kNanosPerSecond}); }
  std::optional<Driver> driver_;
};

TEST_F(SuspectTest, IsTriedAloneByTheNextWorker) {
  begin(1);
  auto actions = driver_->send(event::WorkerGone{0, true});
  EXPECT_FALSE(all<action::RetryTask>(actions).at(0).alone);
  EXPECT_THAT(assigned(driver_->send(event::WorkerReady{0}), 0), ElementsAre(0));
  EXPECT_THAT(assigned(driver_->send(event::Tick{}), 0), IsEmpty()) << "nothing joins it";
  actions = driver_->send(event::WorkerGone{0, true});
  ASSERT_EQ(all<action::EndTask>(actions).size(), 1U);
  EXPECT_TRUE(all<action::EndTask>(actions)[0].alone);
  EXPECT_EQ(all<action::EndTask>(actions)[0].task.task, 0U);
}

TEST_F(SuspectTest, IsTakenByTheFirstIdleWorker) {
  begin(1);
  driver_->send(event::WorkerGone{0, true});  // its place is not filled yet
  for (const int left : {3, 2, 1}) {
    EXPECT_THAT(assigned(done(1), 1), IsEmpty()) << "with " << left << " left it shall come to rest";
  }
  EXPECT_THAT(assigned(done(1), 1), ElementsAre(0));
  EXPECT_FALSE(assigned(driver_->send(event::WorkerReady{0}), 0).empty()) << "others go on beside it";
  EXPECT_FALSE(assigned(done(1), 1).empty()) << "acquitted";
}

TEST_F(SuspectTest, ThatWasNotBegunStaysOneAndIsNotCharged) {
  begin(1);
  driver_->send(event::WorkerGone{0, true});
  EXPECT_THAT(assigned(driver_->send(event::WorkerReady{0}), 0), ElementsAre(0));
  const auto actions = driver_->send(event::WorkerGone{0, false});  // before it began
  EXPECT_THAT(all<action::RetryTask>(actions), IsEmpty());
  EXPECT_THAT(all<action::EndTask>(actions), IsEmpty());
  const auto assigns = all<action::Assign>(driver_->send(event::WorkerReady{0}));
  ASSERT_EQ(assigns.size(), 1U);
  ASSERT_EQ(assigns[0].tasks.size(), 1U);
  EXPECT_EQ(assigns[0].tasks[0].task, 0U);
  EXPECT_EQ(assigns[0].tasks[0].attempt, 2);
}

TEST_F(SuspectTest, AfterTwoDeathsTheOthersGoFirst) {
  begin(5);
  driver_->send(event::WorkerGone{0, true});
  driver_->send(event::WorkerReady{0});
  driver_->send(event::WorkerGone{0, true});
  std::vector<TaskId> order = assigned(driver_->send(event::WorkerReady{0}), 0);
  for (int step = 0; step < 40; ++step) {
    const int slot = step % 2;
    if (!driver_->scheduler().current(slot)) continue;
    const auto actions = done(slot);
    for (const int other : {0, 1}) {
      for (const TaskId task : assigned(actions, other)) order.push_back(task);
    }
    for (const auto& wanted : all<action::TakeBack>(actions)) driver_->send(event::TakenBack{wanted.slot, 0});
  }
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(order.back(), 0U);
  EXPECT_EQ(driver_->scheduler().counts().ok, 12U);
  EXPECT_EQ(std::count(order.begin(), order.end(), 0U), 1);
}

TEST_F(SuspectTest, AnErrorMakesNoSuspect) {
  Policy wanted = policy(1);
  wanted.retries_on_error = 1;
  driver_.emplace(wanted);
  driver_->send(event::Begin{});
  driver_->send(event::InputsRead{1, true});
  driver_->send(event::WorkerReady{0});
  const auto actions = driver_->send(event::TaskDone{0, true, 1});
  EXPECT_THAT(assigned(actions, 0), ElementsAre(0));
}

/// Starts a worker and lets it die; returns how often until the job is given up.
int starts_until_given_up(bool gets_ready, bool from_outside) {
  Policy wanted = workers(2);
  Driver driver(wanted);
  driver.send(event::Begin{});
  driver.send(event::InputsRead{50, true});
  for (int starts = 1; starts < 1000; ++starts) {
    driver.send(event::WorkerReady{1});  // the other slot is healthy; its workers come and go
    driver.send(event::TaskDone{1, false, kNanosPerMilli});
    driver.send(event::WorkerGone{1, false});
    if (gets_ready) driver.send(event::WorkerReady{0});
    driver.send(event::WorkerGone{0, false, from_outside});
    if (driver.scheduler().start_failed()) return starts;
  }
  return 1000;
}

TEST(FailedStarts, AreBoundedForASlotWhateverOthersDo) {
  EXPECT_EQ(starts_until_given_up(false, false), 3);
  EXPECT_EQ(starts_until_given_up(true, false), 3) << "ready, but dead before its first task";
  EXPECT_EQ(starts_until_given_up(false, true), 20);
  EXPECT_EQ(starts_until_given_up(true, true), 20);
}

TEST(FailedStarts, ATaskThatWasBegunEndsTheRow) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{50, true});
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 2; ++i) {
      driver.send(event::WorkerReady{0});
      driver.send(event::WorkerGone{0, false});
    }
    driver.send(event::WorkerReady{0});
    driver.send(event::TaskDone{0, false, kNanosPerMilli});
    driver.send(event::WorkerGone{0, false});
    EXPECT_FALSE(driver.scheduler().start_failed());
  }
}

}  // namespace
}  // namespace mprun
