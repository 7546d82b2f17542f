// How often memory ran out, from made-up files of a machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "procfs/oom_kills.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

TEST(OomKills, OfTheGroupAndTheMachine) {
  std::string root = (fs::temp_directory_path() / "mprun-oom-XXXXXX").string();
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const auto put = [&](const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  };
  EXPECT_EQ(oom_kills(root).group, 0U);
  EXPECT_EQ(oom_kills(root).machine, 0U);
  put("/proc/vmstat", "pgfault 12\noom_kill 7\n");
  put("/proc/self/cgroup", "4:memory:/old\n0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.events", "low 1\noom 9\noom_kill 3\noom_group_kill 0\n");
  EXPECT_EQ(oom_kills(root).group, 3U);
  EXPECT_EQ(oom_kills(root).machine, 7U);
  put("/sys/fs/cgroup/memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(oom_kills(root).group, 5U);
  put("/proc/vmstat", "oom_kill many\n");
  EXPECT_EQ(oom_kills(root).machine, 0U);
  fs::remove_all(root);
}

}  // namespace
}  // namespace mprun
