#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/joblog_writer.h"

namespace mprun {
namespace {

constexpr const char* kHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

class RecordJoblogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_joblog_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  /// The file after these tasks, without its header.
  [[nodiscard]] std::string lines_of(const std::vector<TaskEnded>& tasks, CommandText command) const {
    auto writer = JoblogWriter::open(dir_ + "/joblog.tsv", std::move(command));
    EXPECT_TRUE(writer);
    for (const TaskEnded& task : tasks) (*writer)->on_event(task);
    (*writer)->on_event(Pulse{});
    EXPECT_FALSE((*writer)->failure());
    std::ostringstream text;
    text << std::ifstream(dir_ + "/joblog.tsv").rdbuf();
    EXPECT_THAT(text.str(), ::testing::StartsWith(kHeader));
    return text.str().substr(std::string_view(kHeader).size());
  }

  std::string dir_;
};

[[nodiscard]] CommandText constant(std::string text) {
  return [text = std::move(text)](std::string* out, const TaskEnded&) { out->append(text); };
}

TEST_F(RecordJoblogTest, NineColumnsAsGnuParallelWritesThem) {
  const TaskEnded task{4, TaskStatus::kOk, "5", "25", 0, 1, 1732182610123456000, 24'400'000, {}, 11, 22};
  EXPECT_EQ(lines_of({task}, constant("seq 1")), "5\t:\t1732182610.123\t0.024\t11\t22\t0\t0\tseq 1\n");
}

TEST_F(RecordJoblogTest, AnUnsuccessfulTaskIsNeverZero) {
  TaskEnded raised{0, TaskStatus::kFailed, "", "{}", 0, 1, 0, 0, {}, 0, 0};
  TaskEnded exited = raised;
  exited.end.exit_code = 3;
  TaskEnded killed = raised;
  killed.end.signal = 9;
  TaskEnded cancelled = raised;
  cancelled.status = TaskStatus::kCancelled;
  EXPECT_EQ(lines_of({raised, exited, killed, cancelled}, constant("c")),
            "1\t:\t0.000\t0.000\t0\t0\t1\t0\tc\n"
            "1\t:\t0.000\t0.000\t0\t0\t3\t0\tc\n"
            "1\t:\t0.000\t0.000\t0\t0\t0\t9\tc\n"
            "1\t:\t0.000\t0.000\t0\t0\t-1\t0\tc\n");
}

TEST_F(RecordJoblogTest, FunctionJobsNameFunctionAndInput) {
  JobSpec spec;
  spec.script = "/home/x/digits.py";
  spec.function = "evaluate";
  const TaskEnded task{0, TaskStatus::kOk, R"({"a": 1})", "1", 0, 1, 0, 0, {}, 0, 0};
  EXPECT_THAT(lines_of({task}, function_command_text(spec)), ::testing::EndsWith("\tdigits.py:evaluate {\"a\": 1}\n"));
}

TEST_F(RecordJoblogTest, TabsAndLineBreaksInTheCommandAreEscaped) {
  EXPECT_THAT(lines_of({TaskEnded{}}, constant("a\tb\nc\rd")), ::testing::EndsWith("\ta\\tb\\nc\\rd\n"));
}

TEST_F(RecordJoblogTest, LongCommandsAreCutBetweenCharacters) {
  std::string umlauts;
  while (umlauts.size() < 2 * JoblogWriter::kLongestCommand) umlauts += "\xC3\xBC";
  for (const std::string& command : {umlauts, "a" + umlauts, std::string(10'000, '\t')}) {
    const std::string line = lines_of({TaskEnded{}}, constant(command));
    const std::string cut = line.substr(line.rfind('\t') + 1);
    EXPECT_THAT(cut, ::testing::EndsWith("...\n"));
    EXPECT_LE(cut.size(), JoblogWriter::kLongestCommand + 1);
    EXPECT_GE(cut.size(), JoblogWriter::kLongestCommand - 1);
    EXPECT_EQ(static_cast<unsigned char>(cut[cut.size() - 5]) == 0xC3, false) << "half a character";
  }
  const std::string exact(JoblogWriter::kLongestCommand, 'x');
  EXPECT_THAT(lines_of({TaskEnded{}}, constant(exact)), ::testing::EndsWith("\t" + exact + "\n"));
}

TEST_F(RecordJoblogTest, AFullDiskIsRemembered) {
  auto writer = JoblogWriter::open("/dev/full", nullptr);
  ASSERT_TRUE(writer);
  (*writer)->on_event(TaskEnded{});
  EXPECT_FALSE((*writer)->flush());
  ASSERT_TRUE((*writer)->failure());
  EXPECT_THAT((*writer)->failure()->message, ::testing::HasSubstr("/dev/full: No space left on device"));
}

TEST(RecordShellWordTest, OnlyWhatNeedsQuotesGetsThem) {
  const auto quoted = [](std::string_view word) {
    std::string out;
    append_shell_word(&out, word);
    return out;
  };
  EXPECT_EQ(quoted("a/b-c_1.txt"), "a/b-c_1.txt");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("two words"), "'two words'");
  EXPECT_EQ(quoted("it's"), R"('it'\''s')");
  EXPECT_EQ(quoted("$HOME"), "'$HOME'");
  EXPECT_EQ(quoted("~"), "'~'");
}

}  // namespace
}  // namespace mprun
