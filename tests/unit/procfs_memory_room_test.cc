// How much memory is left, from made-up files of a machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "procfs/memory_room.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

class MemoryRoomTest : public ::testing::Test {
 protected:
  MemoryRoomTest() {
    std::string pattern = (fs::temp_directory_path() / "mprun-room-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~MemoryRoomTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void put_group(const std::string& folder, const std::string& limit, std::uint64_t used, std::uint64_t cache) const {
    put(folder + "/memory.max", limit + "\n");
    put(folder + "/memory.current", std::to_string(used) + "\n");
    put(folder + "/memory.stat", "anon 5\ninactive_file " + std::to_string(cache) + "\n");
  }
  std::string root_;
};

TEST_F(MemoryRoomTest, NothingIsKnown) {
  EXPECT_EQ(memory_room(root_).bytes, kAny);
  put("/proc/meminfo", "MemAvailable: much\n");
  put("/proc/self/cgroup", "\n:\n0::\n:::\n4:memory\n0::/gone\n");
  EXPECT_EQ(memory_room(root_).bytes, kAny);
}

TEST_F(MemoryRoomTest, WhatTheKernelHasLeft) {
  put("/proc/meminfo", "MemTotal:       8000 kB\nMemFree: 1 kB\nMemAvailable:    3000 kB\n");
  EXPECT_EQ(memory_room(root_).bytes, 3000U * 1024);
  EXPECT_THAT(memory_room(root_).source, HasSubstr("MemAvailable"));
  put("/proc/meminfo", "MemAvailable:    18446744073709551615 kB\n");
  EXPECT_EQ(memory_room(root_).bytes, kAny);
}

TEST_F(MemoryRoomTest, ThePoolOfHugePages) {
  EXPECT_EQ(huge_page_pool(root_).page_bytes, 0U);
  put("/proc/meminfo",
      "HugePages_Total:      10\nHugePages_Free:        7\nHugePages_Rsvd:        3\nHugePages_Surp:        1\n"
      "Hugepagesize:       2048 kB\n");
  EXPECT_EQ(huge_page_pool(root_).page_bytes, 2U << 20);
  EXPECT_EQ(huge_page_pool(root_).free, 4U);
  put("/proc/sys/vm/nr_overcommit_hugepages", "6\n");
  EXPECT_EQ(huge_page_pool(root_).free, 4U + 5);
  put("/proc/meminfo", "HugePages_Free: 0\nHugePages_Rsvd: 1\nHugePages_Surp: 9\nHugepagesize: 2048 kB\n");
  EXPECT_EQ(huge_page_pool(root_).free, 0U);
}

TEST_F(MemoryRoomTest, TheTightestGroupCounts) {
  put("/proc/meminfo", "MemAvailable:    3000 kB\n");
  put("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
  put_group("/sys/fs/cgroup/a/b", "max", 700, 0);
  EXPECT_EQ(memory_room(root_).bytes, 3000U * 1024);
  put_group("/sys/fs/cgroup/a", "1000", 700, 100);  // of the enclosing group
  EXPECT_EQ(memory_room(root_).bytes, 400U);
  EXPECT_THAT(memory_room(root_).source, HasSubstr("control group /a"));
  put_group("/sys/fs/cgroup/a/b", "500", 700, 100);
  EXPECT_EQ(memory_room(root_).bytes, 0U);
  put_group("/sys/fs/cgroup/a/b", "500", 700, 900);
  EXPECT_EQ(memory_room(root_).bytes, 400U);
}

TEST_F(MemoryRoomTest, VersionOne) {
  put("/proc/self/cgroup", "5:cpu:/\n4:memory,hugetlb:/job\n0::/\n");
  const std::string group = "/sys/fs/cgroup/memory/job";
  put(group + "/memory.limit_in_bytes", "9223372036854771712\n");
  put(group + "/memory.usage_in_bytes", "100\n");
  EXPECT_EQ(memory_room(root_).bytes, kAny);
  put(group + "/memory.limit_in_bytes", "1000\n");
  put(group + "/memory.stat", "total_inactive_file 60\n");
  EXPECT_EQ(memory_room(root_).bytes, 960U);
  EXPECT_THAT(memory_room(root_).source, HasSubstr("/job"));
}

}  // namespace
}  // namespace mprun
