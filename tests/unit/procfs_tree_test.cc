// The process tree, on fixture trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "procfs/process_tree.h"

namespace mprun {
namespace {

TEST(Descendants, WalksATreeAndLeavesOutZombies) {
  const std::filesystem::path root = testing::TempDir() + "mprun-procfs";
  std::filesystem::remove_all(root);
  std::string numbers;
  for (int field = 5; field <= 52; ++field) numbers += " 0";
  const auto add = [&](int pid, int parent, char state) {
    std::filesystem::create_directories(root / std::to_string(pid));
    std::ofstream(root / std::to_string(pid) / "stat") << pid << " (x) " << state << ' ' << parent << numbers;
  };
  add(1, 0, 'S');
  add(10, 1, 'S');
  add(11, 10, 'R');
  add(12, 11, 'T');
  add(13, 10, 'Z');
  add(20, 1, 'S');
  std::filesystem::create_directories(root / "self");
  EXPECT_THAT(descendants(10, root.string()), testing::ElementsAre(11, 12));
  EXPECT_THAT(descendants(12, root.string()), testing::IsEmpty());
  EXPECT_THAT(descendants(1, root.string()), testing::SizeIs(4));
}

TEST(CommandLine, IsReadWithItsNulsAndEmptyWithoutAProcess) {
  const std::filesystem::path root = testing::TempDir() + "mprun-cmdline";
  std::filesystem::create_directories(root / "7");
  const std::string text("cat\0a b\0", 8);
  std::ofstream(root / "7/cmdline") << text;
  EXPECT_EQ(command_line(7, root.string()), text);
  EXPECT_EQ(command_line(8, root.string()), "");
}

}  // namespace
}  // namespace mprun
