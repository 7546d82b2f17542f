// The CPU time and memory of workers and their descendants, from a made-up /proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_tree.h"
#include "procfs/worker_use.h"

namespace mprun {
namespace {

constexpr std::uint64_t kPssOfFiles = 50;  // MiB, which FakeTree::pages() adds

class WorkerUseTest : public ::testing::Test {
 protected:
  WorkerUseTest() { tree_.folders["."] = {"self", "meminfo"}; }
  void process(pid_t pid, pid_t parent, pid_t group, std::uint64_t resident_mib, std::uint64_t ticks) {
    tree_.cpu_ticks = ticks;
    tree_.process(pid, parent, group, resident_mib);
  }
  void gone(pid_t pid) { tree_.files.erase(std::to_string(pid) + "/stat"); }
  [[nodiscard]] std::map<pid_t, WorkerUse::Use> look(const std::vector<pid_t>& workers) {
    ProcessTable table;
    table.look(&tree_);
    return use_.look(table, workers);
  }
  FakeTree tree_;
  WorkerUse use_{&tree_, 4096, 100};
};

TEST_F(WorkerUseTest, DescendantsCountAndOthersDoNot) {
  process(10, 1, 10, 100, 150);
  process(11, 10, 10, 90, 20);
  process(12, 11, 12, 80, 5);   // a group of its own
  process(13, 1, 10, 70, 100);  // its parent has ended
  process(20, 1, 20, 60, 7);
  for (const pid_t pid : {10, 11, 12, 13}) tree_.pages(pid, 5, 0, 5);
  tree_.pages(20, 1, 2, 1);
  const auto uses = look({10, 20, 30});
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_DOUBLE_EQ(uses.at(10).cpu, 2.75);
  EXPECT_EQ(uses.at(10).memory, 4 * (5 + kPssOfFiles) * kMiB);
  EXPECT_DOUBLE_EQ(uses.at(20).cpu, 0.07);
  EXPECT_EQ(uses.at(20).memory, (3 + kPssOfFiles) * kMiB);
}

TEST_F(WorkerUseTest, WhatMayNotBeReadCountsWhole) {
  process(10, 1, 10, 100, 0);
  EXPECT_EQ(look({10}).at(10).memory, 100 * kMiB);
}

TEST_F(WorkerUseTest, AStoppedWorkerIsSeen) {
  process(10, 1, 10, 100, 0);
  EXPECT_FALSE(look({10}).at(10).stopped);
  tree_.state = 'T';
  process(10, 1, 10, 100, 0);
  EXPECT_TRUE(look({10}).at(10).stopped);
}

TEST_F(WorkerUseTest, TheTimeOfAnEndedChildStays) {
  process(10, 1, 10, 100, 100);
  process(11, 10, 10, 10, 50);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.5);
  tree_.state = 'Z';
  process(11, 10, 10, 0, 60);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.6);
  tree_.state = 'S';
  gone(11);
  process(10, 1, 10, 100, 160);  // 10 has waited for 11
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.6);
  process(10, 1, 10, 100, 170);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.7);
}

TEST_F(WorkerUseTest, TheTimeOfAnOrphanStaysToo) {
  process(10, 1, 10, 100, 100);
  process(11, 1, 10, 10, 900);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 10);
  gone(11);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 10);
  process(10, 1, 10, 100, 150);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 10);
  process(10, 1, 10, 100, 250);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 11);
}

TEST_F(WorkerUseTest, AChildThatIsMissedOnceCountsOnce) {
  process(10, 1, 10, 100, 100);
  process(11, 10, 10, 10, 50);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.5);
  gone(11);  // the look read its parent before the wait and the child after it
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.5);
  process(10, 1, 10, 100, 150);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.5);
  process(10, 1, 10, 100, 151);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1.51);
}

TEST_F(WorkerUseTest, AtItsEndAWorkerIsAskedOnceMore) {
  process(10, 1, 10, 100, 100);
  EXPECT_DOUBLE_EQ(look({10}).at(10).cpu, 1);
  tree_.state = 'Z';
  process(10, 1, 10, 0, 130);
  EXPECT_DOUBLE_EQ(use_.cpu_at_end(10), 1.3);
  EXPECT_DOUBLE_EQ(use_.cpu_at_end(11), 0);
  process(20, 1, 20, 100, 100);
  EXPECT_DOUBLE_EQ(look({20}).at(20).cpu, 1);
  gone(20);
  EXPECT_DOUBLE_EQ(use_.cpu_at_end(20), 1);
}

TEST_F(WorkerUseTest, ManyPagesAreWalkedThroughInTurns) {
  for (const pid_t pid : {10, 11, 12}) {
    process(pid, 1, pid, 400, 0);
    tree_.pages(pid, 100, 0, 100);
  }
  constexpr std::uint64_t kPss = (100 + kPssOfFiles) * kMiB;
  auto uses = look({10, 11, 12});
  EXPECT_EQ(tree_.walks, 2);  // past 512 MiB
  EXPECT_EQ(uses.at(11).memory, kPss);
  EXPECT_EQ(uses.at(12).memory, 400 * kMiB);  // not yet
  tree_.pages(10, 120, 0, 120);
  uses = look({10, 11, 12});
  EXPECT_EQ(tree_.walks, 4);
  EXPECT_EQ(uses.at(12).memory, kPss);
  EXPECT_EQ(uses.at(10).memory, kPss + 20 * kMiB);
}

TEST_F(WorkerUseTest, BetweenTwoWalksTheResidentPagesCount) {
  for (const pid_t pid : {10, 11, 12}) {
    process(pid, 1, pid, 600, 0);
    tree_.pages(pid, 100, 0, 100);
  }
  constexpr std::uint64_t kPss = (100 + kPssOfFiles) * kMiB;
  for (int turn = 0; turn < 3; ++turn) (void)look({10, 11, 12});  // one per look
  process(11, 1, 11, 630, 0);
  process(12, 1, 12, 100, 0);
  const auto uses = look({10, 11, 12});
  EXPECT_EQ(tree_.walks, 4);
  EXPECT_EQ(uses.at(11).memory, kPss + 30 * kMiB);
  EXPECT_EQ(uses.at(12).memory, 0U);  // it shrank by more than it had
}

TEST_F(WorkerUseTest, AnotherProcessOfTheSameNumberIsAnother) {
  process(10, 1, 10, 100, 500);
  tree_.pages(10, 70, 0, 70);
  (void)look({10});
  (void)use_.cpu_at_end(10);
  process(10, 1, 10, 30, 1);
  tree_.files.erase("10/smaps_rollup");
  const auto use = look({10}).at(10);
  EXPECT_DOUBLE_EQ(use.cpu, 0.01);
  EXPECT_EQ(use.memory, 30 * kMiB);
}

}  // namespace
}  // namespace mprun
