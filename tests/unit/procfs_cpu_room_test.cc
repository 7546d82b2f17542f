// How many CPUs can be used, from made-up files of a machine; the affinity is this process's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "procfs/cpu_room.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class CpuRoomTest : public ::testing::Test {
 protected:
  CpuRoomTest() {
    std::string pattern = (fs::temp_directory_path() / "mprun-cpus-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
  }
  ~CpuRoomTest() override {
    sched_setaffinity(0, sizeof before_, &before_);
    fs::remove_all(root_);
  }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
  cpu_set_t before_{};
};

TEST_F(CpuRoomTest, WhereWeMayRun) {
  EXPECT_EQ(cpu_room(root_).cpus, CPU_COUNT(&before_));
  EXPECT_THAT(cpu_room(root_).source, HasSubstr("affinity"));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(cpu_room(root_).cpus, 1);
}

TEST_F(CpuRoomTest, AQuotaOfAGroupAroundOursPaysForFewer) {
  if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "one CPU";
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_room(root_).cpus, CPU_COUNT(&before_));
  put("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_room(root_).cpus, 1);
  EXPECT_THAT(cpu_room(root_).source, EndsWith("quota of the control group /a"));
  put("/sys/fs/cgroup/a/cpu.max", "100001 100000\n");
  EXPECT_EQ(cpu_room(root_).cpus, 2);
  put("/sys/fs/cgroup/a/cpu.max", "1 100000\n");
  EXPECT_EQ(cpu_room(root_).cpus, 1);
}

TEST_F(CpuRoomTest, AQuotaOfVersionOne) {
  if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "one CPU";
  put("/proc/self/cgroup", "3:cpu,cpuacct:/job\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_room(root_).cpus, CPU_COUNT(&before_));
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(cpu_room(root_).cpus, 1);
}

TEST_F(CpuRoomTest, NonsenseIsNoQuota) {
  put("/proc/self/cgroup", "0::/\n");
  for (const char* text : {"", "0 0\n", "5\n", "5 0\n", "x y\n", "18446744073709551616 1\n", "-5 1\n"}) {
    put("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cpu_room(root_).cpus, CPU_COUNT(&before_)) << text;
  }
}

}  // namespace
}  // namespace mprun
