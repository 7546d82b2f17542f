// core/cluster/blocks.h: splitting into blocks, the names of blocks, and detecting a stopped heartbeat.
#include "cluster/blocks.h"

#include <gtest/gtest.h>

namespace mprun {
namespace {

TEST(Blocks, EachTaskIsInOne) {
  for (const std::uint64_t tasks : {1U, 5U, 31U, 33U, 100U, 1797U}) {
    for (const std::uint64_t shards : {1U, 2U, 3U, 7U, 40U}) {
      const Cutting cutting{tasks, shards};
      std::uint64_t next = 0;
      for (std::uint64_t share = 0; share < shards; ++share) {
        EXPECT_LE(cutting.blocks_in(share), kBlocksPerShare);
        for (std::uint64_t index = 0; index < cutting.blocks_in(share); ++index) {
          const ShardTasks block = cutting.tasks_in({share, index});
          EXPECT_EQ(block.begin, next);
          EXPECT_GT(block.end, block.begin) << "an empty block";
          for (; next < block.end; ++next) EXPECT_TRUE(cutting.block_of(next) == BlockId({share, index})) << next;
        }
      }
      EXPECT_EQ(next, tasks) << shards << " shards";
    }
  }
}

TEST(Blocks, ManyTasksDoNotOverflow) {
  const Cutting cutting{UINT64_MAX / 2, 1000};
  const BlockId last{999, kBlocksPerShare - 1};
  EXPECT_EQ(cutting.tasks_in(last).end, UINT64_MAX / 2);
  EXPECT_TRUE(cutting.block_of(UINT64_MAX / 2 - 1) == last);
}

TEST(Blocks, NamesAreReadBack) {
  EXPECT_EQ(to_string(BlockName{BlockState::kFree, 7, 0}), "free.7");
  EXPECT_EQ(to_string(BlockName{BlockState::kHeld, 7, 1}), "held.7.2");
  for (const char* text : {"free.0", "held.31.1", "done.5.1000000"}) {
    const auto name = parse_block_name(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(to_string(*name), text);
  }
  for (const char* wrong : {"", "free", "free.", "free.32", "free.1.2", "held.1", "held.1.0", "done.1.2.3", "done.1.2x",
                            "gone.1", "held.-1.2", "free.1 ", "cutting.json", "done.1.1000001"})
    EXPECT_FALSE(parse_block_name(wrong)) << wrong;
}

TEST(Heartbeats, AnObserverThatWasSuspendedMeasuresAnew) {
  Heartbeats heartbeats(60 * kNanosPerSecond);
  const auto has_stopped = [&](int seconds) {
    heartbeats.look(seconds * kNanosPerSecond);
    return heartbeats.has_stopped(3, "7 1\n", seconds * kNanosPerSecond);
  };
  for (const int seconds : {1000, 1030, 1059}) EXPECT_FALSE(has_stopped(seconds));
  EXPECT_TRUE(has_stopped(1060));
  for (const int seconds : {1100, 1130, 1159}) EXPECT_FALSE(has_stopped(seconds));
  EXPECT_TRUE(has_stopped(1160));
}

TEST(Heartbeats, StopByTheClockOfTheObserver) {
  Heartbeats heartbeats(60 * kNanosPerSecond);
  const auto at = [](int seconds) { return seconds * kNanosPerSecond; };
  EXPECT_FALSE(heartbeats.has_stopped(3, "7 1\n", at(1000)));
  EXPECT_FALSE(heartbeats.has_stopped(3, "7 1\n", at(1059)));
  EXPECT_FALSE(heartbeats.has_stopped(3, "7 2\n", at(1061)));
  EXPECT_FALSE(heartbeats.has_stopped(3, "7 2\n", at(1120)));
  EXPECT_TRUE(heartbeats.has_stopped(3, "7 2\n", at(1121)));
  EXPECT_FALSE(heartbeats.has_stopped(3, "7 1\n", at(1122))) << "it is back";
  EXPECT_FALSE(heartbeats.has_stopped(4, "", at(1122))) << "it has not begun to beat";
  EXPECT_TRUE(heartbeats.has_stopped(4, "", at(1182)));
  EXPECT_TRUE(heartbeats.has_stopped(5, kLeft, at(0))) << "it has announced its end";
}

}  // namespace
}  // namespace mprun
