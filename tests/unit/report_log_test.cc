#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "report/job_log.h"
#include "report/log_file.h"

namespace mprun {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "mprun_log_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ + "/mprun.log"; }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path()).rdbuf();
    return out.str();
  }
  /// What the log has of these events.
  [[nodiscard]] std::string logged(const std::vector<JobEvent>& events, const std::string& levels = "info") const {
    LogLevels wanted;
    EXPECT_TRUE(wanted.set(levels));
    {
      LogFile file(path(), LogFormat::kText, wanted);
      JobLog log(&file);
      for (const JobEvent& event : events) log.on_event(event);
    }
    return text();
  }

 private:
  std::string folder_;
};

constexpr const char* kTime = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}[+-][0-9]{2}:[0-9]{2}";

TEST_F(LogTest, ALineHasTimeLevelAndComponent) {
  LogFile(path(), LogFormat::kText, LogLevels()).write(LogComponent::kLaunch, LogLevel::kInfo, "worker 0 started");
  EXPECT_THAT(text(), MatchesRegex(std::string(kTime) + " info    launch   worker 0 started\n"));
}

TEST_F(LogTest, FurtherLinesAreIndentedAndNothingMovesACursor) {
  LogFile(path(), LogFormat::kText, LogLevels()).write(LogComponent::kWatch, LogLevel::kWarning, "a\x1b[2J\nb\n");
  EXPECT_THAT(text(), MatchesRegex(std::string(kTime) + " warning watch    a[?]\\[2J\n  b\n"));
}

TEST_F(LogTest, JsonIsOneObjectALine) {
  {
    LogFile file(path(), LogFormat::kJson, LogLevels());
    file.write(LogComponent::kRecord, LogLevel::kError, "a \"%v\"\nb\xff");
    file.write(LogComponent::kCluster, LogLevel::kInfo, "c");
  }
  std::istringstream lines(text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json first = parse_json(line);
  EXPECT_THAT(first["time"].get<std::string>(), MatchesRegex(kTime));
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["component"], "record");
  EXPECT_THAT(first["text"].get<std::string>(), HasSubstr("a \"%v\"\nb"));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(parse_json(line)["text"], "c");
}

TEST_F(LogTest, OnlyWhatIsWantedIsWritten) {
  LogLevels levels;
  ASSERT_TRUE(levels.set("warning,watch=debug,record=off"));
  LogFile file(path(), LogFormat::kText, levels);
  EXPECT_TRUE(file.takes(LogComponent::kWatch, LogLevel::kDebug));
  EXPECT_FALSE(file.takes(LogComponent::kWatch, LogLevel::kTrace));
  EXPECT_FALSE(file.takes(LogComponent::kRecord, LogLevel::kError));
  file.write(LogComponent::kLaunch, LogLevel::kInfo, "no");
  file.flush();
  EXPECT_THAT(text(), IsEmpty());
}

TEST_F(LogTest, AWarningIsInTheFileAtOnce) {
  LogFile file(path(), LogFormat::kText, LogLevels());
  file.write(LogComponent::kLaunch, LogLevel::kInfo, "before");
  EXPECT_THAT(text(), IsEmpty());
  file.write(LogComponent::kLaunch, LogLevel::kWarning, "a warning");
  EXPECT_THAT(text(), AllOf(HasSubstr("before"), HasSubstr("a warning")));
}

TEST_F(LogTest, ASecondSessionGoesOn) {
  LogFile(path(), LogFormat::kText, LogLevels()).write(LogComponent::kRecord, LogLevel::kInfo, "first");
  LogFile(path(), LogFormat::kText, LogLevels()).write(LogComponent::kRecord, LogLevel::kInfo, "second");
  EXPECT_THAT(text(), ContainsRegex("first\n.*second\n"));
}

TEST_F(LogTest, AFullDiskIsOneFailure) {
  LogFile file("/dev/full", LogFormat::kText, LogLevels());
  EXPECT_FALSE(file.failure());
  file.write(LogComponent::kRecord, LogLevel::kWarning, "lost");
  ASSERT_TRUE(file.failure());
  EXPECT_THAT(file.failure()->message, AllOf(HasSubstr("/dev/full ends here: "), HasSubstr("No space left on device")));
  EXPECT_FALSE(file.takes(LogComponent::kRecord, LogLevel::kError));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAFailure) {
  LogFile file("/dev/null/mprun.log", LogFormat::kText, LogLevels());
  file.write(LogComponent::kRecord, LogLevel::kError, "nowhere");
  ASSERT_TRUE(file.failure());
  EXPECT_THAT(file.failure()->message, HasSubstr("/dev/null/mprun.log"));
}

TEST_F(LogTest, EventsOfWorkersAreOfTheLaunch) {
  const std::string lines = logged({WorkerStarted{0, 99, "worker"}, WorkerEnded{0, 99, "worker", {3, 0}, false}});
  EXPECT_THAT(lines, HasSubstr("info    launch   worker 0 started (pid 99)\n"));
  EXPECT_THAT(lines, HasSubstr("warning launch   worker 0 (pid 99) died: exit code 3\n"));
}

TEST_F(LogTest, WhatEachCommandBringsIsForDebugging) {
  const std::vector<JobEvent> events{WorkerStarted{0, 99, "command"}, WorkerEnded{0, 99, "command", {}, true},
                                     WorkerStage{1, "importing job.py"}};
  EXPECT_THAT(logged(events), IsEmpty());
  const std::string lines = logged(events, "launch=debug");
  EXPECT_THAT(lines, HasSubstr("debug   launch   command 0 started (pid 99)\n"));
  EXPECT_THAT(lines, HasSubstr("debug   launch   worker 1: importing job.py\n"));
}

TEST_F(LogTest, AMillionFailuresDoNotFillADisk) {
  TaskEnded failed;
  failed.status = TaskStatus::kFailed;
  failed.result = R"({"type":"ValueError","message":"no"})";
  const std::vector<JobEvent> events(50, failed);
  const std::string lines = logged(events);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 10);
  EXPECT_THAT(lines, HasSubstr("info    schedule task 0 failed: ValueError: no (worker 0, attempt 1)\n"));
}

TEST_F(LogTest, ANoticeNamesWhereItIsFrom) {
  const std::string lines = logged({Notice{Notice::Kind::kWarning, "shard 3 is dead", LogComponent::kCluster},
                                    Notice{Notice::Kind::kExplain, "took tasks back"}});
  EXPECT_THAT(lines, HasSubstr("warning cluster  shard 3 is dead\n"));
  EXPECT_THAT(lines, Not(HasSubstr("took tasks back")));
}

TEST_F(LogTest, AHangIsThereInFull) {
  const std::string lines =
      logged({HangFound{"mprun: deadlock\n  thread 7\n", "deadlock", "lock-cycle", "hangs/1.json"}});
  EXPECT_THAT(lines, HasSubstr("warning watch    found: deadlock, lock-cycle, see hangs/1.json\n  mprun: deadlock\n"));
}

TEST_F(LogTest, APulseIsALineWhereThePhaseChanges) {
  Pulse pulse;
  pulse.phase = "running";
  pulse.total = 10;
  Pulse later = pulse;
  later.done = 10;
  later.phase = "finished";
  const std::string lines = logged({pulse, pulse, later, later});
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_THAT(lines, HasSubstr("finished: 10 of 10 tasks done, 0 failed, 0 retried\n"));
}

}  // namespace
}  // namespace mprun
