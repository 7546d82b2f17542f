// The memory that workers do not share, from a made-up /proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_tree.h"
#include "procfs/memory_use.h"

namespace mprun {
namespace {

using testing::IsEmpty;

class MemoryUseTest : public ::testing::Test {
 protected:
  MemoryUseTest() { tree_.folders["."] = {"self", "meminfo"}; }
  [[nodiscard]] std::uint64_t excess_of(pid_t worker) {
    ProcessTable table;
    table.look(&tree_);
    for (const auto& excess : use_.look(table, {worker})) {
      if (excess.worker == worker) return excess.bytes / kMiB;
    }
    return 0;
  }
  FakeTree tree_;
  MemoryUse use_{&tree_, 200 * kMiB, 30 * kMiB, 4096};
};

TEST_F(MemoryUseTest, NothingThere) {
  EXPECT_THAT(use_.look(ProcessTable(), {}), IsEmpty());
  EXPECT_EQ(excess_of(10), 0U);
}

TEST_F(MemoryUseTest, SmallOnesAreNotWalkedThrough) {
  tree_.process(10, 1, 10, 199);
  EXPECT_EQ(excess_of(10), 0U);
  EXPECT_EQ(tree_.walks, 0);
}

TEST_F(MemoryUseTest, WhatIsSharedWithOthersDoesNotCount) {
  tree_.process(10, 1, 10, 1100);
  tree_.pages(10, 600, 0, 100);  // one sibling left: half the model seems to be its own
  EXPECT_EQ(excess_of(10), 0U);
  tree_.pages(10, 750, 0, 250);
  tree_.process(10, 1, 10, 1100, 38'400);  // copies of pages: nothing more is resident
  EXPECT_EQ(excess_of(10), 250U);
}

TEST_F(MemoryUseTest, SharedTensorsOfTheJobDoNotCount) {
  tree_.process(10, 1, 10, 300);
  tree_.pages(10, 180, 40, 220);
  EXPECT_EQ(excess_of(10), 0U);
  tree_.pages(10, 180, 80, 260);
  tree_.process(10, 1, 10, 340);
  EXPECT_EQ(excess_of(10), 230U);
}

TEST_F(MemoryUseTest, ChildrenCountAlsoThoseWhoseParentHasEnded) {
  tree_.process(10, 1, 10, 100);
  tree_.process(11, 10, 10, 90);
  tree_.process(12, 11, 12, 90);  // a group of its own
  tree_.process(13, 1, 10, 90);   // an orphan
  tree_.process(14, 1, 14, 900);  // unrelated
  for (const pid_t pid : {10, 11, 12, 13}) tree_.pages(pid, 80, 0, 60);
  EXPECT_EQ(excess_of(10), 320U);
}

TEST_F(MemoryUseTest, NoProcessIsWalkedThroughTwiceForNothing) {
  tree_.process(10, 1, 10, 1100);
  tree_.pages(10, 600, 0, 100);
  EXPECT_EQ(excess_of(10), 0U);
  EXPECT_EQ(tree_.walks, 1);
  tree_.process(10, 1, 10, 1150, 12'800);
  EXPECT_EQ(excess_of(10), 0U);
  EXPECT_EQ(tree_.walks, 1);
  tree_.process(10, 1, 10, 1210);  // 110 MiB more
  EXPECT_EQ(excess_of(10), 0U);
  EXPECT_EQ(tree_.walks, 2);
}

TEST_F(MemoryUseTest, AProcessThatMayNotBeInspectedCountsForNothing) {
  tree_.process(10, 1, 10, 1100);
  EXPECT_EQ(excess_of(10), 0U);
  tree_.files["10/smaps_rollup"] = "Pss: 18446744073709551615 kB\nPrivate_Dirty: x\n\nPss:\n";
  EXPECT_EQ(excess_of(10), 0U);
  tree_.files["10/stat"] = "10 (";
  EXPECT_EQ(excess_of(10), 0U);
}

TEST_F(MemoryUseTest, AFamilyInACycleEnds) {
  tree_.process(10, 11, 10, 150);
  tree_.process(11, 10, 10, 150);
  for (const pid_t pid : {10, 11}) tree_.pages(pid, 150, 0, 150);
  EXPECT_EQ(excess_of(10), 300U);
}

}  // namespace
}  // namespace mprun
