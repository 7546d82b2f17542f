#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "record/run_directory.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class RecordRunDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_run_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = fs::canonical(pattern);
    before_ = fs::current_path();
    fs::current_path(dir_);
    spec_.name = "digits";
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(dir_);
  }

  fs::path dir_, before_;
  JobSpec spec_;
};

[[nodiscard]] Json read_json(const fs::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

TEST_F(RecordRunDirectoryTest, TheDefaultIsBelowRunsWithLatestPointingToIt) {
  const auto run = RunDirectory::create(spec_, Json{{"version", 1}});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(fs::path(run->path()).parent_path(), dir_ / "runs/digits");
  EXPECT_THAT(fs::path(run->path()).filename().string(), MatchesRegex("[0-9]{8}-[0-9]{6}"));
  EXPECT_EQ(fs::canonical(dir_ / "runs/digits/latest"), fs::path(run->path()));
  EXPECT_TRUE(fs::read_symlink(dir_ / "runs/digits/latest").is_relative());
  EXPECT_EQ(fs::status(run->path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(read_json(run->file("job.json")), (Json{{"version", 1}}));
  EXPECT_TRUE(fs::is_directory(run->file("logs")));
  EXPECT_FALSE(run->warning());
}

TEST_F(RecordRunDirectoryTest, RunsOfTheSameSecondGetDirectoriesOfTheirOwn) {
  std::string last;
  for (int i = 0; i < 5; ++i) {
    const auto run = RunDirectory::create(spec_, Json::object());
    ASSERT_TRUE(run);
    EXPECT_NE(run->path(), last);
    last = run->path();
    EXPECT_EQ(fs::canonical("runs/digits/latest"), fs::path(last));
  }
  const auto entries = std::distance(fs::directory_iterator("runs/digits"), fs::directory_iterator());
  EXPECT_EQ(entries, 6) << "five runs and latest, no temporary link";
}

TEST_F(RecordRunDirectoryTest, ALatestThatCannotBeReplacedIsAWarning) {
  fs::create_directories("runs/digits/latest/mine");
  const auto run = RunDirectory::create(spec_, Json::object());
  ASSERT_TRUE(run);
  ASSERT_TRUE(run->warning());
  EXPECT_THAT(*run->warning(), HasSubstr("runs/digits/latest"));
}

TEST_F(RecordRunDirectoryTest, ANamedDirectoryIsCreatedWithItsParents) {
  spec_.output_dir = dir_ / "a/b/c/";
  const auto run = RunDirectory::create(spec_, Json::object());
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->path(), (dir_ / "a/b/c").string());
  EXPECT_EQ(fs::status(run->path()).permissions(), fs::perms::owner_all);
  EXPECT_FALSE(fs::exists("runs"));
  EXPECT_FALSE(fs::exists(run->file("job.json.tmp")));
}

TEST_F(RecordRunDirectoryTest, AnEmptyNamedDirectoryIsTaken) {
  spec_.output_dir = dir_ / "out";
  fs::create_directory(spec_.output_dir);
  EXPECT_TRUE(RunDirectory::create(spec_, Json::object()));
}

TEST_F(RecordRunDirectoryTest, AFullNamedDirectoryIsAUsageErrorThatNamesTheCure) {
  spec_.output_dir = dir_ / "out";
  ASSERT_TRUE(RunDirectory::create(spec_, Json::object()));
  const auto again = RunDirectory::create(spec_, Json::object());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().fault, Fault::kUsage);
  EXPECT_THAT(again.error().message, HasSubstr("not empty; choose another with --output, or remove it"));
}

TEST_F(RecordRunDirectoryTest, AFileInTheWayIsAUsageError) {
  std::ofstream("file") << "x";
  for (const char* path : {"file", "file/below"}) {
    spec_.output_dir = dir_ / path;
    const auto run = RunDirectory::create(spec_, Json::object());
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().fault, Fault::kUsage);
    EXPECT_THAT(run.error().message, HasSubstr("Not a directory"));
  }
}

TEST_F(RecordRunDirectoryTest, ADirectoryWithoutWritePermissionIsAUsageError) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directory("closed");
  fs::permissions("closed", fs::perms::owner_read | fs::perms::owner_exec);
  for (const char* path : {"closed", "closed/below"}) {
    spec_.output_dir = dir_ / path;
    const auto run = RunDirectory::create(spec_, Json::object());
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().fault, Fault::kUsage);
    EXPECT_THAT(run.error().message, HasSubstr("Permission denied"));
  }
}

TEST_F(RecordRunDirectoryTest, AnOddJobNameStaysOneDirectory) {
  spec_.name = "../a/b";
  const auto run = RunDirectory::create(spec_, Json::object());
  ASSERT_TRUE(run);
  EXPECT_EQ(fs::path(run->path()).parent_path(), dir_ / "runs/..-a-b");
}

TEST_F(RecordRunDirectoryTest, ARunThatNeverBeganIsCleared) {
  spec_.output_dir = "out";
  ASSERT_TRUE(RunDirectory::create(spec_, Json::object()));
  std::ofstream("out/journal.jsonl") << "{\"torn";
  const auto cleared = RunDirectory::remove_unstarted("out");
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_TRUE(*cleared);
  EXPECT_TRUE(fs::is_empty("out"));
}

TEST_F(RecordRunDirectoryTest, ARunWhoseJournalCannotBeReadIsKept) {
  for (const char* const journal : {"/proc/self/mem", "journal.jsonl"}) {  // EIO, ELOOP
    spec_.output_dir = std::string("out-") + (journal[0] == '/' ? "read" : "open");
    ASSERT_TRUE(RunDirectory::create(spec_, Json::object()));
    fs::create_symlink(journal, spec_.output_dir + "/journal.jsonl");
    const auto cleared = RunDirectory::remove_unstarted(spec_.output_dir);
    ASSERT_TRUE(cleared) << cleared.error().message;
    EXPECT_FALSE(*cleared) << journal;
    EXPECT_TRUE(fs::exists(spec_.output_dir + "/job.json")) << journal;
  }
}

}  // namespace
}  // namespace mprun
