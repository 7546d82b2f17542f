// The scheduler's decisions under random schedules: what must hold in all of them.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "scheduler_driver.h"

namespace mprun {
namespace {

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
    if (!interrupted_ && !job_hung_ && !policy_.stop_on_error && !driver_.scheduler().start_failed()) {
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
    policy_.retries_on_hang = static_cast<int>(pick(5));
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
    switch (pick(9)) {
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
      case 4:
        if (pick(400) == 0) {
          job_hung_ = true;
          perform(driver_.send(event::JobHung{}));
        } else if (pick(8) == 0) {
          perform(driver_.send(event::WorkerHung{slot}));
          EXPECT_TRUE(process.doomed || !process.alive || (policy_.process_per_task && process.queue.empty()));
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
    perform(driver_.send(event::WorkerGone{slot, started, pick(8) != 0}));
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
      EXPECT_LE(task.attempt,
                1 + std::max({policy_.retries_on_error, policy_.retries_on_death, policy_.retries_on_hang}));
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
  void check(const action::RetryTask& wanted) {
    out_.erase(wanted.task.task);
    EXPECT_LE(wanted.task.attempt, wanted.cause == Cause::kHang   ? policy_.retries_on_hang
                                   : wanted.cause == Cause::kNone ? policy_.retries_on_error
                                                                  : policy_.retries_on_death);
    EXPECT_FALSE(job_hung_) << "nothing goes on in a job that hung";
  }

  std::mt19937_64 random_;
  Policy policy_;
  std::uint64_t total_ = 0, read_ = 0;
  std::vector<Process> processes_;
  Driver driver_;
  bool wants_inputs_ = false, interrupted_ = false, job_hung_ = false, interrupts_allowed_ = true;
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
