#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "os/fd.h"
#include "record/line_format.h"
#include "record/results_writer.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "record_results_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  [[nodiscard]] std::string path(const std::string& name = "results.jsonl") const { return dir_ + "/" + name; }
  [[nodiscard]] std::unique_ptr<ResultsWriter> open(Order order, const std::string& copy = "") const {
    auto writer = ResultsWriter::open({path(), order, copy});
    EXPECT_TRUE(writer) << writer.error().message;
    return std::move(writer).value();
  }
  static std::string contents(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static std::vector<TaskId> tasks_in(const std::string& file) {
    std::vector<TaskId> tasks;
    std::istringstream lines(contents(file));
    for (std::string line; std::getline(lines, line);) tasks.push_back(Json::parse(line).at("task").get<TaskId>());
    return tasks;
  }

  std::string dir_;
};

void end_task(Sink& sink, TaskId task, std::string_view value = "1") {
  TaskEnded ended;
  ended.task = task;
  ended.result = value;
  ended.start = kNanosPerSecond;
  sink.on_event(ended);
}

template <int kDecimals>
std::string seconds_text(Nanos time) {
  char text[kNumberRoom];
  return std::string(text, put_seconds<kDecimals>(text, time));
}

TEST(RecordLineFormatTest, SecondsAreRoundedToExactlyTheDecimals) {
  EXPECT_EQ(seconds_text<6>(0), "0.000000");
  EXPECT_EQ(seconds_text<6>(1499), "0.000001");
  EXPECT_EQ(seconds_text<6>(1500), "0.000002");
  EXPECT_EQ(seconds_text<3>(999'999'999), "1.000");
  EXPECT_EQ(seconds_text<6>(1732182610123456000), "1732182610.123456");
  EXPECT_EQ(seconds_text<3>(-5), "0.000");
  EXPECT_EQ(seconds_text<9>(INT64_MAX), "9223372036.854775807");
}

TEST_F(RecordResultsTest, LinesAreExactlyAsDocumented) {
  auto writer = open(Order::kCompletion);
  writer->on_event(TaskEnded{12, TaskStatus::kOk, "12", "144", 0, 1, 1732182610123456000, 1000, {}, 0, 0});
  writer->on_event(TaskEnded{
      7, TaskStatus::kFailed, "7", R"({"type":"E"})", 3, 2, kNanosPerSecond, 2 * kNanosPerSecond, {1, 0}, 0, 0});
  writer->on_event(TaskEnded{8, TaskStatus::kCancelled, "8", "", 1, 1, 0, 0, {}, 0, 0});
  writer->finish();
  EXPECT_EQ(
      contents(path()),
      R"({"task":12,"status":"ok","value":144,"worker":0,"attempt":1,"start":1732182610.123456,"seconds":0.000001})"
      "\n"
      R"({"task":7,"status":"failed","error":{"type":"E"},"worker":3,"attempt":2,"start":1.000000,"seconds":2.000000})"
      "\n"
      R"({"task":8,"status":"cancelled","error":{},"worker":1,"attempt":1,"start":0.000000,"seconds":0.000000})"
      "\n");
}

TEST_F(RecordResultsTest, AValueWithLineBreaksStaysOneLine) {
  auto writer = open(Order::kCompletion);
  end_task(*writer, 0, "[1,\n 2\n]");
  end_task(*writer, 1, "");
  writer->finish();
  EXPECT_THAT(tasks_in(path()), ElementsAre(0, 1));
  EXPECT_THAT(contents(path()), HasSubstr(R"("value":[1,  2 ])"));
  EXPECT_THAT(contents(path()), HasSubstr(R"("value":null)"));
}

TEST_F(RecordResultsTest, TheJournalIsInTheOrderOfCompletionUntilFinishSortsIt) {
  auto writer = open(Order::kInput);
  for (const TaskId task : {3, 1, 6, 0}) end_task(*writer, task);
  writer->on_event(Pulse{});
  EXPECT_THAT(tasks_in(path()), ElementsAre(3, 1, 6, 0));
  writer->finish();
  EXPECT_THAT(tasks_in(path()), ElementsAre(0, 1, 3, 6));
  EXPECT_FALSE(fs::exists(path() + ".tmp"));
  EXPECT_THAT(writer->take_warnings(), IsEmpty());
}

TEST_F(RecordResultsTest, CompletionOrderIsKeptWhenAskedFor) {
  auto writer = open(Order::kCompletion);
  for (const TaskId task : {3, 1, 0}) end_task(*writer, task);
  writer->finish();
  EXPECT_THAT(tasks_in(path()), ElementsAre(3, 1, 0));
}

TEST_F(RecordResultsTest, AFileInOrderIsNotRewritten) {
  auto writer = open(Order::kInput);
  for (const TaskId task : {0, 1, 5}) end_task(*writer, task);
  writer->flush();
  const std::ifstream held(path());
  fs::create_directory(path() + ".tmp");  // a rewrite would fail and warn
  writer->finish();
  EXPECT_THAT(writer->take_warnings(), IsEmpty());
}

TEST_F(RecordResultsTest, ManyLinesOfAllSizesAreSorted) {
  constexpr TaskId kTasks = 3000;
  auto writer = open(Order::kInput, path("copy"));
  std::vector<TaskId> expected;
  for (TaskId i = 0; i < kTasks; ++i) {
    const TaskId task = (i * 1117) % kTasks;  // 1117 and 3000 have no common divisor
    end_task(*writer, task, '"' + std::string(task % 100 == 0 ? 300'000 : task % 500, 'x') + '"');
    expected.push_back(i);
  }
  writer->finish();
  EXPECT_EQ(tasks_in(path()), expected);
  EXPECT_EQ(contents(path("copy")), contents(path()));
}

TEST_F(RecordResultsTest, AFailedRewriteKeepsTheFileAndWarns) {
  auto writer = open(Order::kInput);
  for (const TaskId task : {1, 0}) end_task(*writer, task);
  fs::create_directory(path() + ".tmp");
  writer->finish();
  EXPECT_THAT(tasks_in(path()), ElementsAre(1, 0));
  EXPECT_THAT(writer->take_warnings(), ElementsAre(HasSubstr("stays in the order of completion")));
}

TEST_F(RecordResultsTest, TheCopyHoldsLinesBackUntilEarlierTasksAreThere) {
  auto writer = open(Order::kInput, path("copy"));
  end_task(*writer, 1);
  end_task(*writer, 2);
  writer->flush();
  EXPECT_THAT(tasks_in(path("copy")), IsEmpty());
  end_task(*writer, 0);
  writer->flush();
  EXPECT_THAT(tasks_in(path("copy")), ElementsAre(0, 1, 2));
  end_task(*writer, 5);
  end_task(*writer, 3);
  writer->flush();
  EXPECT_THAT(tasks_in(path("copy")), ElementsAre(0, 1, 2, 3));
  writer->finish();  // task 4 never ran
  EXPECT_THAT(tasks_in(path("copy")), ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(tasks_in(path()), ElementsAre(0, 1, 2, 3, 5));
}

TEST_F(RecordResultsTest, TheCopyInCompletionOrderWaitsForNothing) {
  auto writer = open(Order::kCompletion, path("copy"));
  for (const TaskId task : {4, 0}) end_task(*writer, task);
  writer->on_event(Pulse{});
  EXPECT_THAT(tasks_in(path("copy")), ElementsAre(4, 0));
}

TEST_F(RecordResultsTest, ACopyThatCannotBeCreatedIsAUsageError) {
  const auto writer = ResultsWriter::open({path(), Order::kInput, path("missing/copy")});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().fault, Fault::kUsage);
  EXPECT_THAT(writer.error().message, HasSubstr("missing/copy: No such file or directory"));
}

TEST_F(RecordResultsTest, AFailingCopyStopsWithOneWarningAndTheJournalGoesOn) {
  auto writer = open(Order::kInput, "/dev/full");
  end_task(*writer, 0);
  writer->flush();
  end_task(*writer, 1);
  writer->finish();
  EXPECT_THAT(writer->take_warnings(), ElementsAre(HasSubstr("No space left on device")));
  EXPECT_FALSE(writer->failure());
  EXPECT_THAT(tasks_in(path()), ElementsAre(0, 1));
}

TEST_F(RecordResultsTest, AReaderOfStandardOutputThatLeavesStopsTheCopyOnly) {
  auto* const handler = std::signal(SIGPIPE, SIG_IGN);  // as cli/ does
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const Fd saved(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  dup2(pipe->write.get(), STDOUT_FILENO);
  auto writer = open(Order::kCompletion, "-");
  dup2(saved.get(), STDOUT_FILENO);
  end_task(*writer, 0);
  writer->flush();
  char text[16] = {};
  EXPECT_EQ(read(pipe->read.get(), text, 8), 8);
  EXPECT_STREQ(text, R"({"task":)");
  pipe->read.reset();
  end_task(*writer, 1);
  writer->finish();
  EXPECT_THAT(writer->take_warnings(), ElementsAre(HasSubstr("Broken pipe")));
  EXPECT_THAT(tasks_in(path()), ElementsAre(0, 1));
  (void)std::signal(SIGPIPE, handler);
}

TEST_F(RecordResultsTest, AFullDiskIsRememberedWithItsCure) {
  auto writer = ResultsWriter::open({"/dev/full", Order::kInput, ""});
  ASSERT_TRUE(writer);
  end_task(**writer, 1);
  end_task(**writer, 0);
  EXPECT_FALSE((*writer)->failure());
  (*writer)->on_event(Pulse{});
  ASSERT_TRUE((*writer)->failure());
  EXPECT_THAT((*writer)->failure()->message, HasSubstr("No space left on device; free some space"));
  EXPECT_THAT((*writer)->failure()->message, HasSubstr("--output"));
  end_task(**writer, 2);
  (*writer)->finish();
}

/// Limits this process's files to `bytes`; write(2) is then cut short and returns EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &saved_);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &saved_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit saved_{};
  void (*handler_)(int);
};

TEST_F(RecordResultsTest, APartialLastLineIsCutOff) {
  auto writer = open(Order::kInput);
  {
    const FileSizeLimit limit(250);  // two lines of about 100 bytes and a part of a third
    for (const TaskId task : {2, 1, 0}) end_task(*writer, task);
    writer->flush();
    EXPECT_TRUE(writer->failure());
    end_task(*writer, 3);
    writer->finish();
  }
  EXPECT_THAT(tasks_in(path()), ElementsAre(2, 1));
  EXPECT_EQ(contents(path()).back(), '\n');
}

TEST_F(RecordResultsTest, NothingIsWrittenAfterAFailure) {
  auto writer = open(Order::kInput);
  {
    const FileSizeLimit limit(250);
    for (const TaskId task : {2, 1, 0}) end_task(*writer, task);
    writer->flush();
    ASSERT_TRUE(writer->failure());
  }
  end_task(*writer, 3);  // there is room again, and task 0 is missing
  writer->flush();
  EXPECT_THAT(tasks_in(path()), ElementsAre(2, 1));
}

TEST_F(RecordResultsTest, WhatArrivesDuringASyncIsNotCertain) {
  std::vector<std::uint64_t> certain;
  const Fd journal = open_fd(path("journal"), O_RDWR | O_CREAT, 0600);
  ResultsOptions options{path(), Order::kInput, "", Durability::kBatch};
  options.written_files = [this] {
    std::vector<Fd> files;
    files.push_back(open_fd(path("tensor"), O_RDWR | O_CREAT, 0600));
    return files;
  };
  options.certain = [&](std::uint64_t bytes) {
    certain.push_back(bytes);
    return journal.get();
  };
  auto writer = ResultsWriter::open(options);
  ASSERT_TRUE(writer);
  for (TaskId task = 0; task < ResultsWriter::kMostUnsynced; ++task) end_task(**writer, task);
  const std::uint64_t synced = contents(path()).size();
  while (certain.empty()) {
    end_task(**writer, 1'000'000);
    (*writer)->on_event(Pulse{});
  }
  EXPECT_EQ(certain.front(), synced);
}

TEST_F(RecordResultsTest, ARewriteThatDoesNotFitKeepsTheFile) {
  auto writer = open(Order::kInput);
  for (const TaskId task : {2, 1, 0}) end_task(*writer, task);
  writer->flush();
  {
    const FileSizeLimit limit(250);
    writer->finish();
  }
  EXPECT_THAT(tasks_in(path()), ElementsAre(2, 1, 0));
  EXPECT_FALSE(fs::exists(path() + ".tmp"));
  EXPECT_THAT(writer->take_warnings(), ElementsAre(HasSubstr("File too large")));
}

}  // namespace
}  // namespace mprun
