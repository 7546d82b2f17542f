// Gives each process of unit tests a temporary folder of its own, in which testing::TempDir() is: two halves of the
// tests run side by side (tests/CMakeLists.txt), and other checkouts may run theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace mprun {
namespace {

class OwnFolder : public testing::Environment {
 public:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "mprun-unit-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    setenv("TEST_TMPDIR", (pattern + "/").c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};

// GoogleTest owns it.
[[maybe_unused]] const testing::Environment* const own_folder = testing::AddGlobalTestEnvironment(new OwnFolder);

TEST(OwnFolder, IsThatOfTemporaryFiles) {
  EXPECT_THAT(testing::TempDir(), testing::HasSubstr("mprun-unit-"));
  EXPECT_TRUE(std::filesystem::is_directory(testing::TempDir()));
}

}  // namespace
}  // namespace mprun
