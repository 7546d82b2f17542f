// What workers use of their own, from a /proc that a test writes down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_process.h"
#include "procfs/memory_use.h"

namespace mprun {
namespace {

using testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// Counts who is walked through.
class FakeTree : public FakeProcess {
 public:
  int walks = 0;

  void process(pid_t pid, pid_t parent, pid_t group, std::uint64_t resident_mib, std::uint64_t faults = 0) {
    std::string line = std::to_string(pid) + " (a) b) S " + std::to_string(parent) + " " + std::to_string(group);
    for (int field = 6; field <= 52; ++field) {
      const std::uint64_t value = field == 10 ? faults : field == 22 ? 7 : field == 24 ? resident_mib * 256 : 0;
      line += " " + std::to_string(value);
    }
    const std::string name = std::to_string(pid);
    if (files.count(name + "/stat") == 0) folders["."].push_back(name);
    files[name + "/stat"] = line + "\n";
  }
  void pages(pid_t pid, std::uint64_t anonymous_mib, std::uint64_t shmem_mib, std::uint64_t only_its_mib) {
    const auto kib = [](std::uint64_t mib) { return std::to_string(mib * 1024) + " kB\n"; };
    files[std::to_string(pid) + "/smaps_rollup"] =
        "00400000-7ffea8f13000 ---p 00000000 00:00 0  [rollup]\nRss: 1 kB\nPss: " +
        kib(anonymous_mib + shmem_mib + 50) + "Pss_Anon: " + kib(anonymous_mib) + "Pss_File: " + kib(50) +
        "Pss_Shmem: " + kib(shmem_mib) + "Private_Clean: " + kib(50) + "Private_Dirty: " + kib(only_its_mib) +
        "SwapPss: 0 kB\n";
  }
  std::optional<std::string> read(const std::string& path) override {
    if (path.find("smaps_rollup") != std::string::npos) ++walks;
    return FakeProcess::read(path);
  }
};

class MemoryUseTest : public ::testing::Test {
 protected:
  MemoryUseTest() { tree_.folders["."] = {"self", "meminfo"}; }
  [[nodiscard]] std::uint64_t excess_of(pid_t worker) {
    for (const auto& excess : use_.look({worker})) {
      if (excess.worker == worker) return excess.bytes / kMiB;
    }
    return 0;
  }
  FakeTree tree_;
  MemoryUse use_{&tree_, 200 * kMiB, 30 * kMiB, 4096};
};

TEST_F(MemoryUseTest, NothingThere) {
  EXPECT_THAT(use_.look({}), IsEmpty());
  EXPECT_EQ(excess_of(10), 0U);
}

TEST_F(MemoryUseTest, SmallOnesAreNotWalkedThrough) {
  tree_.process(10, 1, 10, 199);
  EXPECT_EQ(excess_of(10), 0U);
  EXPECT_EQ(tree_.walks, 0);
}

TEST_F(MemoryUseTest, WhatIsSharedWithOthersDoesNotCount) {
  tree_.process(10, 1, 10, 1100);
  tree_.pages(10, 600, 0, 100);  // one sibling left: half the model seems to be its
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
  tree_.process(13, 1, 10, 90);   // left behind
  tree_.process(14, 1, 14, 900);  // somebody else's
  for (const pid_t pid : {10, 11, 12, 13}) tree_.pages(pid, 80, 0, 60);
  EXPECT_EQ(excess_of(10), 320U);
}

TEST_F(MemoryUseTest, NobodyIsWalkedThroughTwiceForNothing) {
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

TEST_F(MemoryUseTest, WhoMayNotBeLookedAtCountsForNothing) {
  tree_.process(10, 1, 10, 1100);
  EXPECT_EQ(excess_of(10), 0U);
  tree_.files["10/smaps_rollup"] = "Pss: 18446744073709551615 kB\nPrivate_Dirty: x\n\nPss:\n";
  EXPECT_EQ(excess_of(10), 0U);
  tree_.files["10/stat"] = "10 (";
  EXPECT_EQ(excess_of(10), 0U);
}

TEST_F(MemoryUseTest, AFamilyInACircleEnds) {
  tree_.process(10, 11, 10, 150);
  tree_.process(11, 10, 10, 150);
  for (const pid_t pid : {10, 11}) tree_.pages(pid, 150, 0, 150);
  EXPECT_EQ(excess_of(10), 300U);
}

}  // namespace
}  // namespace mprun
