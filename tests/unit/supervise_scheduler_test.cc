// The scheduler's decisions, case by case and under random schedules: no clock, no process.
#include "supervise/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <set>

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Policy workers(int count) {
  Policy policy;
  policy.workers = count;
  return policy;
}

/// Drives a scheduler by hand and remembers what it wanted.
class Driver {
 public:
  explicit Driver(const Policy& policy) : scheduler_(policy) {}

  std::vector<Action> send(const Event& event) {
    std::vector<Action> actions;
    scheduler_.step(event, now_, &actions);
    return actions;
  }
  void pass(double seconds) { now_ += from_seconds(seconds); }
  Scheduler& scheduler() { return scheduler_; }

 private:
  Scheduler scheduler_;
  Nanos now_ = kNanosPerSecond;
};

template <typename T>
std::vector<T> all(const std::vector<Action>& actions) {
  std::vector<T> found;
  for (const Action& action : actions) {
    if (const T* wanted = std::get_if<T>(&action)) found.push_back(*wanted);
  }
  return found;
}

std::vector<TaskId> assigned(const std::vector<Action>& actions, int slot) {
  std::vector<TaskId> tasks;
  for (const auto& assign : all<action::Assign>(actions)) {
    if (assign.slot != slot) continue;
    for (const TaskAttempt& task : assign.tasks) tasks.push_back(task.task);
  }
  return tasks;
}

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

TEST(Scheduler, ShortTasksAreQueuedByTheHundred) {
  Driver driver(workers(1));
  driver.send(event::Begin{});
  driver.send(event::InputsRead{8192, false});
  driver.send(event::WorkerReady{0});
  const auto actions = driver.send(event::TaskDone{0, false, 10'000});  // 10 microseconds
  EXPECT_GT(assigned(actions, 0).size(), 1000U);
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
  const auto assigns = all<action::Assign>(actions);
  ASSERT_EQ(assigns.size(), 1U);
  EXPECT_EQ(assigns[0].tasks[0].task, 1U);  // innocent, still its first attempt
  EXPECT_EQ(assigns[0].tasks[0].attempt, 1);
  EXPECT_EQ(assigns[0].tasks[2].task, 0U);
  EXPECT_EQ(assigns[0].tasks[2].attempt, 2);
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
  driver.send(event::TaskDone{0, false, 1});  // now it is retiring, and does not exit
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

TEST(Scheduler, RankFailureEndsTheOthersAtOnce) {
  Policy policy = workers(3);
  policy.process_per_task = policy.ranks = true;
  Driver driver(policy);
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
  Policy policy = workers(2);
  policy.process_per_task = policy.ranks = true;
  Driver driver(policy);
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

/// A world of workers that do anything at any time; checks what must hold in all of them.
class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed), driver_(make_policy()) {}

  void run() {
    perform(driver_.send(event::Begin{}));
    for (int step = 0; step < 20'000 && !driver_.scheduler().over(); ++step) one_step();
    ASSERT_TRUE(driver_.scheduler().over()) << "the job hangs";
    const Counts& counts = driver_.scheduler().counts();
    EXPECT_EQ(counts.done(), ended_.size());
    if (!interrupted_ && !policy_.stop_on_error && !driver_.scheduler().start_failed()) {
      EXPECT_EQ(ended_.size(), total_) << "a task was lost";
    }
  }

 private:
  struct Process {
    bool alive = false, ready = false, retired = false, doomed = false;
    std::deque<TaskId> queue;
  };

  Policy make_policy() {
    policy_ = workers(static_cast<int>(pick(4)) + 1);
    policy_.process_per_task = pick(4) == 0;
    if (pick(2) == 0) policy_.chunk_size = static_cast<int>(pick(9)) + 1;
    policy_.retries_on_error = static_cast<int>(pick(3));
    policy_.retries_on_death = static_cast<int>(pick(3));
    policy_.retry_delay = pick(3) == 0 ? kNanosPerSecond : 0;
    policy_.stop_on_error = pick(6) == 0;
    if (pick(3) == 0 && !policy_.process_per_task) policy_.tasks_per_worker = static_cast<int>(pick(5)) + 1;
    if (pick(3) == 0) policy_.task_limit = kNanosPerSecond;
    total_ = pick(60) + 1;
    processes_.resize(static_cast<std::size_t>(policy_.workers));
    return policy_;
  }

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  Process& at(int slot) { return processes_[static_cast<std::size_t>(slot)]; }

  void one_step() {
    driver_.pass(static_cast<double>(pick(100)) / 1000);
    const int slot = static_cast<int>(pick(processes_.size()));
    Process& process = at(slot);
    switch (pick(8)) {
      case 0:
        perform(driver_.send(event::Tick{}));
        break;
      case 1:
        if (wants_inputs_) {
          wants_inputs_ = false;
          const std::uint64_t count = std::min(total_ - read_, pick(20));
          read_ += count;
          perform(driver_.send(event::InputsRead{count, read_ == total_}));
        }
        break;
      case 2:
        if (interrupts_allowed_ && pick(400) == 0) {
          interrupted_ = true;
          perform(driver_.send(event::Interrupt{}));
        }
        break;
      case 3:
        if (!policy_.process_per_task && process.alive && (process.doomed || process.retired || pick(10) == 0)) {
          die(slot);
        }
        break;
      default:
        if (process.alive && !process.ready) {
          process.ready = true;
          perform(driver_.send(event::WorkerReady{slot}));
        } else if (!process.queue.empty() && pick(3) != 0) {
          process.queue.pop_front();
          perform(driver_.send(event::TaskDone{slot, pick(5) == 0 || process.doomed, from_seconds(0.01)}));
        } else if (process.retired) {
          die(slot);
        }
    }
  }

  void die(int slot) {
    Process& process = at(slot);
    const bool started = !process.queue.empty() && pick(2) == 0;
    for (const TaskId task : process.queue) out_.erase(task);
    process = Process{};
    perform(driver_.send(event::WorkerGone{slot, started}));
  }

  void perform(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      std::visit([this](const auto& wanted) { check(wanted); }, action);
    }
  }
  void check(const action::ReadInputs& /*wanted*/) { wants_inputs_ = true; }
  void check(const action::StartWorker& wanted) {
    EXPECT_FALSE(at(wanted.slot).alive);
    at(wanted.slot).alive = true;
  }
  void check(const action::Assign& wanted) {
    EXPECT_TRUE(at(wanted.slot).ready && !at(wanted.slot).retired);
    for (const TaskAttempt& task : wanted.tasks) {
      EXPECT_LT(task.task, read_);
      EXPECT_EQ(ended_.count(task.task), 0U) << "an ended task ran again";
      EXPECT_TRUE(out_.insert(task.task).second) << "a task runs twice at once";
      EXPECT_LE(task.attempt, 1 + std::max(policy_.retries_on_error, policy_.retries_on_death));
      at(wanted.slot).queue.push_back(task.task);
    }
  }
  void check(const action::TakeBack& wanted) {
    Process& process = at(wanted.slot);
    const auto count = static_cast<std::uint32_t>(process.queue.size() > 1 ? pick(process.queue.size()) : 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      out_.erase(process.queue.back());
      process.queue.pop_back();
    }
    taken_back_.push_back({wanted.slot, count});
    if (taken_back_.size() > 1) return;
    while (!taken_back_.empty()) {
      perform(driver_.send(taken_back_.front()));
      taken_back_.pop_front();
    }
  }
  void check(const action::Retire& wanted) { at(wanted.slot).retired = true; }
  void check(const action::Signal& wanted) { at(wanted.slot).doomed = true; }
  void check(const action::EndTask& wanted) {
    out_.erase(wanted.task.task);
    EXPECT_TRUE(ended_.insert(wanted.task.task).second) << "a task ended twice";
    at(wanted.slot).doomed = at(wanted.slot).doomed && !policy_.process_per_task;
  }
  void check(const action::RetryTask& wanted) { out_.erase(wanted.task.task); }

  std::mt19937_64 random_;
  Policy policy_;
  std::uint64_t total_ = 0, read_ = 0;
  std::vector<Process> processes_;
  Driver driver_;
  bool wants_inputs_ = false, interrupted_ = false, interrupts_allowed_ = true;
  std::set<TaskId> out_, ended_;
  std::deque<event::TakenBack> taken_back_;
};

TEST(Scheduler, RandomSchedulesLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld(seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mprun
