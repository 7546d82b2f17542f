// core/record/claimed_blocks.h on real directories: which shard gets which block, when others take it over, and what is
// never done twice.
#include "record/claimed_blocks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "base/clock.h"
#include "job/spec.h"

namespace mprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kPatience = 60 * kNanosPerSecond;

class ClaimedBlocksTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "claimed_blocks_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    for (int shard = 1; shard <= 8; ++shard)
      std::filesystem::create_directories(path_ + "/shards/" + std::to_string(shard));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  [[nodiscard]] Result<std::unique_ptr<ClaimedBlocks>> try_open(Shard shard, std::uint64_t tasks,
                                                                bool goes_on = false) {
    auto directory = BlockDirectory::open(path_, {tasks, shard.count}, shard);
    if (!directory) return directory.error();
    ClaimedBlocks::Options options;
    options.shard = shard;
    options.patience = kPatience;
    options.ended = &ended_;
    options.goes_on = goes_on;
    options.open_inputs = [tasks] {
      JobSpec spec;
      spec.inputs = RangeInput{100, static_cast<std::int64_t>(100 + tasks), 1};
      return open_inputs(spec);
    };
    options.make_durable = [this] {
      ++certain_;
      return durable_.load();
    };
    return ClaimedBlocks::open(std::move(*directory), std::move(options));
  }
  [[nodiscard]] std::unique_ptr<ClaimedBlocks> open(Shard shard, std::uint64_t tasks, bool goes_on = false) {
    auto opened = try_open(shard, tasks, goes_on);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  /// The tasks of all blocks, by the shard that has done them.
  [[nodiscard]] DoneBlocks done() const { return *(**BlockDirectory::find(path_)).look_at_all(); }

  std::string path_;
  RowSet ended_;
  std::atomic<int> certain_ = 0;
  std::atomic<bool> durable_ = true;
};

/// Takes the next task, checks its input, ends it; nullopt: there is none now.
std::optional<TaskId> run_one(ClaimedBlocks* blocks, Nanos now, TaskStatus status = TaskStatus::kOk) {
  const auto task = blocks->next(now);
  if (!task) return std::nullopt;
  std::string input;
  EXPECT_EQ(blocks->pull(&input), InputSource::Pull::kItem);
  EXPECT_EQ(input, std::to_string(100 + *task));
  TaskEnded ended;
  ended.task = *task;
  ended.status = status;
  blocks->on_event(ended);
  return task;
}

TEST_F(ClaimedBlocksTest, OwnBlocksComeFirstAndThenThoseOfOthers) {
  auto first = open({0, 2}, 100);
  auto second = open({1, 2}, 100);
  EXPECT_EQ(run_one(first.get(), 0), 0U);
  EXPECT_EQ(run_one(second.get(), 0), 50U);
  Nanos now = 0;
  std::uint64_t ran = 2;
  while (run_one(first.get(), now)) ++ran;
  EXPECT_FALSE(first->all_done());
  EXPECT_EQ(first->waits_for(), "blocks of shard 2");
  first->tick(now);
  while (run_one(second.get(), now)) ++ran;
  second->tick(now);
  EXPECT_EQ(ran, 100U);
  now += kNanosPerSecond;
  for (auto* blocks : {first.get(), second.get()}) {
    EXPECT_EQ(blocks->next(now), std::nullopt);
    EXPECT_TRUE(blocks->all_done());
    EXPECT_THAT(blocks->take_warnings(), IsEmpty());
  }
  EXPECT_TRUE(done().by(1, 50)) << "held by it when the other had done all else";
  EXPECT_TRUE(done().by(0, 99));
}

TEST_F(ClaimedBlocksTest, ABlockIsDoneWhenItsResultsAreOnDisk) {
  auto blocks = open({0, 1}, 64);  // two tasks per block
  durable_ = false;
  EXPECT_EQ(run_one(blocks.get(), 0), 0U);
  blocks->tick(0);
  EXPECT_EQ(certain_, 0) << "nothing to be made certain yet";
  EXPECT_EQ(run_one(blocks.get(), 0), 1U);
  blocks->tick(0);
  EXPECT_FALSE(done().by(0, 0));
  durable_ = true;
  blocks->tick(0);
  EXPECT_TRUE(done().by(0, 0));
  EXPECT_EQ(certain_, 2);
}

TEST_F(ClaimedBlocksTest, BlocksOfTheSilentAreTakenOverAndTheirResultsDoNotCount) {
  auto dead = open({0, 2}, 4);
  auto living = open({1, 2}, 4);
  EXPECT_EQ(dead->next(0), 0U);  // held, and then silent
  Nanos now = 0;
  std::vector<TaskId> ran;
  for (; now < kPatience; now += kPatience / 20) {
    while (const auto task = run_one(living.get(), now)) ran.push_back(*task);
    living->tick(now);
  }
  EXPECT_THAT(ran, ElementsAre(2, 3, 1)) << "not before our patience is over";
  EXPECT_EQ(run_one(living.get(), now + kNanosPerSecond), 0U);
  EXPECT_THAT(living->take_warnings(), ElementsAre("took over task 0 of shard 1, whose heartbeat has stopped"));
  living->tick(now);
  std::string input;
  (void)dead->pull(&input);
  TaskEnded late;
  late.task = 0;
  dead->on_event(late);
  dead->tick(now);
  EXPECT_THAT(dead->take_warnings(), ElementsAre(HasSubstr("another shard has taken over task 0")));
  EXPECT_TRUE(done().by(1, 0));
  EXPECT_FALSE(done().by(0, 0));
  EXPECT_EQ(dead->next(now), std::nullopt);
  EXPECT_TRUE(dead->all_done());
}

TEST_F(ClaimedBlocksTest, OfALostBlockNoMoreTasksAreBegun) {
  auto slow = open({0, 2}, 200);
  auto other = open({1, 2}, 200);
  EXPECT_EQ(run_one(slow.get(), 0), 0U);
  (void)other->next(0);
  const std::string share = path_ + "/blocks/1/";
  std::filesystem::rename(share + "held.0.1", share + "held.0.2");
  slow->tick(monotonic_now() + kPatience);
  EXPECT_EQ(slow->next(0), 3U) << "task 1 and 2 are another shard's";
}

TEST_F(ClaimedBlocksTest, AShardThatLeavesGivesBackWhatItHasNotBegun) {
  auto blocks = open({0, 2}, 256);  // four tasks per block
  EXPECT_EQ(run_one(blocks.get(), 0), 0U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run_one(blocks.get(), 0, TaskStatus::kCancelled));
  EXPECT_TRUE(run_one(blocks.get(), 0, TaskStatus::kCancelled));
  blocks->leave();
  EXPECT_THAT(done().held, ElementsAre(std::pair(0U, 4U)));
  auto other = open({1, 2}, 256);
  std::set<TaskId> ran;
  while (const auto task = run_one(other.get(), 0)) ran.insert(*task);
  EXPECT_EQ(ran.size(), 256U) << "no shard waits for one that has announced its end";
}

TEST_F(ClaimedBlocksTest, TheNextSessionGoesOnWithItsOwn) {
  {
    auto blocks = open({0, 1}, 128);
    for (TaskId task = 0; task < 6; ++task) EXPECT_EQ(run_one(blocks.get(), 0), task);
    blocks->tick(0);
  }  // killed: tasks 4 and 5 of its second block have ended
  ended_.add(0, 6);
  EXPECT_EQ(open({0, 1}, 128, true)->next(0), 6U);
  RowSet lost;
  lost.add(0, 2);
  std::swap(lost, ended_);  // results were lost with a disk, or are failures to retry
  auto again = open({0, 1}, 128, true);
  EXPECT_EQ(run_one(again.get(), 0), 2U);
  EXPECT_EQ(run_one(again.get(), 0), 3U);
  EXPECT_EQ(run_one(again.get(), 0), 4U);
}

TEST_F(ClaimedBlocksTest, OthersWithOtherTasksAreRefused) {
  auto first = open({0, 2}, 100);
  const auto more = try_open({1, 2}, 101);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("shard 2/2 would share 101 tasks in 2 shards, and the run in "));
  EXPECT_THAT(more.error().message, HasSubstr(" is one of 100 tasks in 2 shards\n"));
  EXPECT_FALSE(try_open({1, 3}, 100));
}

TEST_F(ClaimedBlocksTest, EachBlockIsClaimedOnceHoweverManyTry) {
  constexpr std::uint64_t kShards = 8;
  constexpr std::uint64_t kTasks = 1000;
  std::vector<std::vector<TaskId>> ran(kShards);
  {
    std::vector<std::thread> threads;
    for (std::uint64_t index = 0; index < kShards; ++index) {
      threads.emplace_back([&, index] {
        auto blocks = open({index, kShards}, kTasks);
        while (!blocks->all_done()) {
          const Nanos now = monotonic_now();
          while (const auto task = run_one(blocks.get(), now)) ran[index].push_back(*task);
          blocks->tick(now);
          std::this_thread::yield();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<TaskId> all;
  for (const auto& tasks : ran) all.insert(all.end(), tasks.begin(), tasks.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), kTasks);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end()) << "a task was run twice";
}

}  // namespace
}  // namespace mprun
