// Ranks that start again after a failure: as a group, each in its slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "scheduler_driver.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A group whose ranks all run.
class RunningRanks : public Driver {
 public:
  explicit RunningRanks(const Policy& policy) : Driver(policy) {
    send(event::Begin{});
    send(event::InputsRead{static_cast<std::uint64_t>(policy.workers), true});
    for (int rank = 0; rank < policy.workers; ++rank) send(event::WorkerReady{rank});
  }
};

std::vector<std::pair<int, Cause>> retried(const std::vector<Action>& actions) {
  std::vector<std::pair<int, Cause>> found;
  for (const auto& retry : all<action::RetryTask>(actions)) found.emplace_back(retry.slot, retry.cause);
  return found;
}

/// Slot and attempt of what is handed out; the task has the number of its slot.
std::vector<std::pair<int, int>> begun(const std::vector<Action>& actions) {
  std::vector<std::pair<int, int>> found;
  for (const auto& assign : all<action::Assign>(actions)) {
    EXPECT_EQ(assign.tasks.at(0).task, static_cast<TaskId>(assign.slot));
    found.emplace_back(assign.slot, assign.tasks.at(0).attempt);
  }
  return found;
}

TEST(SchedulerRanks, AFailureStartsAllAgain) {
  RunningRanks driver(ranks(3, 1));
  auto actions = driver.send(event::TaskDone{1, true, 1});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(1, Cause::kNone)));
  ASSERT_EQ(all<action::Signal>(actions).size(), 2U);
  EXPECT_EQ(all<action::Signal>(actions).at(0).signal, SIGTERM);
  EXPECT_EQ(all<action::Signal>(actions).at(0).cause, Cause::kRankFailed);
  actions = driver.send(event::TaskDone{2, true, 1});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(2, Cause::kRankFailed)));
  EXPECT_THAT(all<action::Assign>(actions), IsEmpty()) << "rank 0 still runs";
  actions = driver.send(event::TaskDone{0, false, 1});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(0, Cause::kRankFailed))) << "however it ended";
  EXPECT_THAT(begun(actions), ElementsAre(std::pair(0, 2), std::pair(1, 2), std::pair(2, 2)));
  EXPECT_EQ(driver.scheduler().counts().done(), 0U);
  EXPECT_EQ(driver.scheduler().counts().retried, 3U);
}

TEST(SchedulerRanks, AResultIsHeldUntilAllHaveEndedWell) {
  RunningRanks driver(ranks(2, 1));
  auto actions = driver.send(event::TaskDone{1, false, 7});
  ASSERT_EQ(all<action::HoldResult>(actions).size(), 1U);
  EXPECT_EQ(all<action::HoldResult>(actions).at(0).slot, 1);
  EXPECT_THAT(all<action::EndTask>(actions), IsEmpty());
  EXPECT_THAT(all<action::Retire>(actions), IsEmpty()) << "the slot may be needed again";
  EXPECT_EQ(driver.scheduler().held(), 1U);
  actions = driver.send(event::TaskDone{0, false, 9});
  const auto ended = all<action::EndTask>(actions);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended.at(1).slot, 1);
  EXPECT_EQ(ended.at(1).running, 7);
  EXPECT_EQ(driver.scheduler().counts().ok, 2U);
  EXPECT_EQ(all<action::Retire>(actions).size(), 2U);
}

TEST(SchedulerRanks, WhatEndedWellRunsAgainToo) {
  RunningRanks driver(ranks(2, 1));
  driver.send(event::TaskDone{1, false, 7});
  auto actions = driver.send(event::TaskDone{0, true, 9});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(0, Cause::kNone), std::pair(1, Cause::kRankFailed)));
  EXPECT_EQ(all<action::RetryTask>(actions).at(1).running, 7);
  EXPECT_THAT(begun(actions), ElementsAre(std::pair(0, 2), std::pair(1, 2)));
  // No attempt is left: a result counts at once.
  actions = driver.send(event::TaskDone{1, false, 7});
  EXPECT_EQ(all<action::EndTask>(actions).size(), 1U);
}

TEST(SchedulerRanks, TheLastFailureEndsTheJob) {
  RunningRanks driver(ranks(2, 1));
  driver.send(event::TaskDone{0, true, 1});
  driver.send(event::TaskDone{1, true, 1});
  const auto actions = driver.send(event::TaskDone{0, true, 1});
  ASSERT_EQ(all<action::EndTask>(actions).size(), 1U);
  EXPECT_EQ(all<action::EndTask>(actions).at(0).task.attempt, 2);
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kRankFailed);
}

TEST(SchedulerRanks, EachCauseHasABoundOfItsOwn) {
  for (const bool died : {false, true}) {
    Policy policy = ranks(2, 0);
    (died ? policy.retries_on_death : policy.retries_on_error) = 1;
    RunningRanks same(policy);
    EXPECT_EQ(retried(same.send(event::TaskDone{0, true, 1, false, died})).size(), 1U);
    RunningRanks other(policy);
    EXPECT_THAT(retried(other.send(event::TaskDone{0, true, 1, false, !died})), IsEmpty());
  }
  Policy policy = ranks(2, 0);
  policy.retries_on_hang = 1;
  RunningRanks driver(policy);
  driver.send(event::WorkerHung{0});
  EXPECT_THAT(retried(driver.send(event::TaskDone{0, true, 1, true, true})), ElementsAre(std::pair(0, Cause::kHang)));
}

TEST(SchedulerRanks, OneThatIsTooSlowStartsAllAgain) {
  Policy policy = ranks(2, 1);
  policy.task_limit = kNanosPerSecond;
  RunningRanks driver(policy);
  driver.pass(2);
  driver.send(event::Tick{});  // both are too slow
  auto actions = driver.send(event::TaskDone{0, true, 1, true, true});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(0, Cause::kTaskLimit)));
  EXPECT_THAT(all<action::Signal>(actions), IsEmpty()) << "the other one has its signal";
  actions = driver.send(event::TaskDone{1, true, 1, true, true});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(1, Cause::kTaskLimit)));
  EXPECT_EQ(begun(actions).size(), 2U);
}

TEST(SchedulerRanks, WhoIgnoresTermIsKilledAfterTheGrace) {
  RunningRanks driver(ranks(2, 1));
  driver.send(event::TaskDone{0, true, 1});
  driver.pass(4);
  EXPECT_THAT(driver.send(event::Tick{}), IsEmpty());
  driver.pass(1);
  const auto signals = all<action::Signal>(driver.send(event::Tick{}));
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals.at(0).signal, SIGKILL);
  EXPECT_EQ(signals.at(0).slot, 1);
}

TEST(SchedulerRanks, TheDelayGrowsWithTheAttempts) {
  Policy policy = ranks(2, 2);
  policy.retry_delay = kNanosPerSecond;
  policy.retry_backoff = 3;
  RunningRanks driver(policy);
  for (const double delay : {1.0, 3.0}) {
    driver.send(event::TaskDone{0, true, 1});
    driver.pass(10);  // the delay begins when all have ended
    EXPECT_THAT(begun(driver.send(event::TaskDone{1, true, 1})), IsEmpty());
    driver.pass(delay - 0.1);
    EXPECT_THAT(begun(driver.send(event::Tick{})), IsEmpty());
    driver.pass(0.1);
    EXPECT_EQ(begun(driver.send(event::Tick{})).size(), 2U);
  }
}

TEST(SchedulerRanks, AStopEndsTheWait) {
  Policy policy = ranks(2, 1);
  policy.retry_delay = kNanosPerSecond;
  const std::vector<Event> stops{event::Interrupt{}, event::JobHung{}, event::StartFailed{}};
  for (const Event& stop : stops) {
    RunningRanks driver(policy);
    driver.send(event::TaskDone{0, true, 1});
    driver.send(event::TaskDone{1, true, 1});
    EXPECT_EQ(all<action::Retire>(driver.send(stop)).size(), 2U);
    driver.pass(2);
    EXPECT_THAT(begun(driver.send(event::Tick{})), IsEmpty());
    for (const int rank : {0, 1}) driver.send(event::WorkerGone{rank});
    EXPECT_TRUE(driver.scheduler().over());
    EXPECT_EQ(driver.scheduler().counts().done(), 0U) << "as tasks that wait for a retry";
  }
}

TEST(SchedulerRanks, AStopKeepsWhatIsHeldAndCancelsWhatRuns) {
  RunningRanks driver(ranks(2, 1));
  driver.send(event::TaskDone{1, false, 1});
  const auto ended = all<action::EndTask>(driver.send(event::Interrupt{}));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended.at(0).status, TaskStatus::kOk);
  RunningRanks other(ranks(2, 1));
  other.send(event::TaskDone{1, true, 1});
  other.send(event::Interrupt{});
  const auto cancelled = all<action::EndTask>(other.send(event::TaskDone{0, true, 1}));
  ASSERT_EQ(cancelled.size(), 1U);
  EXPECT_EQ(cancelled.at(0).status, TaskStatus::kCancelled);
}

// --- with the ranks of other shards ---

Policy ranks_with_leader(int count, int restarts) {
  Policy policy = ranks(count, restarts);
  policy.has_leader = true;
  return policy;
}

TEST(SchedulerRanks, TheLeaderBeginsEachAttempt) {
  RunningRanks driver(ranks_with_leader(2, 1));
  EXPECT_EQ(driver.scheduler().busy(), 0);
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kReady, 1));
  EXPECT_THAT(driver.send(event::GroupDecided{GroupPhase::kRun, 2}), IsEmpty());
  EXPECT_THAT(begun(driver.send(event::GroupDecided{GroupPhase::kRun, 1})),
              ElementsAre(std::pair(0, 1), std::pair(1, 1)));
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kRunning, 1));
  EXPECT_THAT(driver.send(event::GroupDecided{GroupPhase::kRun, 1}), IsEmpty()) << "it says so all the time";
  driver.send(event::TaskDone{0, true, 1});
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kFailed, 1));
  EXPECT_THAT(begun(driver.send(event::TaskDone{1, true, 1})), IsEmpty());
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kReady, 2));
  EXPECT_THAT(driver.send(event::GroupDecided{GroupPhase::kGather, 2}), IsEmpty());
  EXPECT_THAT(begun(driver.send(event::Tick{})), IsEmpty());
  EXPECT_THAT(begun(driver.send(event::GroupDecided{GroupPhase::kRun, 2})),
              ElementsAre(std::pair(0, 2), std::pair(1, 2)));
}

TEST(SchedulerRanks, AFailureElsewhereStartsAllAgain) {
  Policy policy = ranks_with_leader(2, 1);
  policy.retry_delay = kNanosPerSecond;
  RunningRanks driver(policy);
  driver.send(event::GroupDecided{GroupPhase::kRun, 1});
  EXPECT_EQ(all<action::HoldResult>(driver.send(event::TaskDone{1, false, 1})).size(), 1U);
  auto actions = driver.send(event::GroupDecided{GroupPhase::kGather, 2});
  EXPECT_THAT(retried(actions), ElementsAre(std::pair(1, Cause::kRankFailed)));
  ASSERT_EQ(all<action::Signal>(actions).size(), 1U);
  EXPECT_EQ(all<action::Signal>(actions).at(0).slot, 0);
  driver.send(event::TaskDone{0, true, 1});
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kFailed, 1)) << "it is not ready before the delay";
  driver.pass(1);
  driver.send(event::Tick{});
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kReady, 2));
}

TEST(SchedulerRanks, AnAttemptMayFailElsewhereBeforeItBeginsHere) {
  RunningRanks driver(ranks_with_leader(1, 1));
  EXPECT_THAT(driver.send(event::GroupDecided{GroupPhase::kGather, 2}), IsEmpty());
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kReady, 2));
  EXPECT_THAT(begun(driver.send(event::GroupDecided{GroupPhase::kRun, 2})), ElementsAre(std::pair(0, 2)));
}

TEST(SchedulerRanks, ResultsAreHeldUntilAllShardsHaveEndedWell) {
  RunningRanks driver(ranks_with_leader(1, 1));
  driver.send(event::GroupDecided{GroupPhase::kRun, 1});
  EXPECT_EQ(all<action::HoldResult>(driver.send(event::TaskDone{0, false, 1})).size(), 1U);
  EXPECT_EQ(driver.scheduler().rank_state(), std::pair(RankState::kWell, 1));
  EXPECT_THAT(retried(driver.send(event::GroupDecided{GroupPhase::kGather, 2})),
              ElementsAre(std::pair(0, Cause::kRankFailed)));
  driver.send(event::GroupDecided{GroupPhase::kRun, 2});
  EXPECT_EQ(all<action::HoldResult>(driver.send(event::TaskDone{0, false, 1})).size(), 1U) << "in the last attempt too";
  const auto actions = driver.send(event::GroupDecided{GroupPhase::kFinished, 2});
  EXPECT_EQ(all<action::EndTask>(actions).size(), 1U);
  EXPECT_EQ(all<action::Retire>(actions).size(), 1U);
}

TEST(SchedulerRanks, AStopElsewhereIsOneHere) {
  RunningRanks driver(ranks_with_leader(2, 1));
  driver.send(event::GroupDecided{GroupPhase::kRun, 1});
  driver.send(event::TaskDone{1, false, 1});
  const auto actions = driver.send(event::GroupDecided{GroupPhase::kStopped, 1});
  EXPECT_EQ(all<action::EndTask>(actions).size(), 1U) << "what ended well";
  ASSERT_EQ(all<action::Signal>(actions).size(), 1U);
  EXPECT_EQ(all<action::Signal>(actions).at(0).slot, 0);
  EXPECT_EQ(driver.scheduler().stopping(), Cause::kRankFailed);
  EXPECT_EQ(driver.scheduler().rank_state().first, RankState::kStopped);
}

}  // namespace
}  // namespace mprun
