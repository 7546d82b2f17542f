#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/json.h"
#include "record/summary.h"

namespace mprun {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kStarted = 1732182610 * kNanosPerSecond + 7 * kNanosPerMilli;

[[nodiscard]] JobSpec spec_of(JobKind kind) {
  JobSpec spec;
  spec.name = "digits";
  spec.kind = kind;
  spec.start_method = StartMethod::kSpawn;
  return spec;
}

void end_tasks(Summary& summary, int count, TaskStatus status) {
  TaskEnded ended;
  ended.status = status;
  for (int i = 0; i < count; ++i) summary.on_event(ended);
}

TEST(RecordSummaryTest, CountsWhatEnded) {
  Summary summary(spec_of(JobKind::kFunction), kStarted);
  end_tasks(summary, 5, TaskStatus::kOk);
  end_tasks(summary, 3, TaskStatus::kFailed);
  end_tasks(summary, 1, TaskStatus::kCancelled);
  summary.on_event(TaskRetried{});
  Pulse pulse;
  pulse.total = 12;
  summary.on_event(pulse);
  const Json json = summary.to_json(1, 2.0);
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("job"), "digits");
  EXPECT_EQ(json.at("kind"), to_string(JobKind::kFunction));
  EXPECT_EQ(json.at("start_method"), to_string(StartMethod::kSpawn));
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("started"), "2024-11-21T09:50:10.007Z");
  EXPECT_EQ(json.at("seconds"), 2.0);
  EXPECT_EQ(json.at("counts"), Json::parse(R"({"total": 12, "ok": 5, "failed": 3, "cancelled": 1,
                                               "not_run": 3, "retried": 1})"));
  EXPECT_EQ(json.at("tasks_per_second"), 4.0);
  EXPECT_EQ(json.at("hangs"), Json::array());
  EXPECT_FALSE(json.contains("command_exits"));
}

TEST(RecordSummaryTest, AnUnknownTotalIsNullAndSoIsWhatDidNotRun) {
  const Summary summary(spec_of(JobKind::kFunction), kStarted);
  const Json json = summary.to_json(0, 0);
  EXPECT_TRUE(json.at("counts").at("total").is_null());
  EXPECT_TRUE(json.at("counts").at("not_run").is_null());
  EXPECT_EQ(json.at("tasks_per_second"), 0.0);
}

TEST(RecordSummaryTest, EveryProcessThatWorkedIsListedWithItsEnd) {
  Summary summary(spec_of(JobKind::kFunction), kStarted);
  summary.on_event(WorkerEnded{0, 100, "host", {0, 0}, true});
  summary.on_event(WorkerEnded{2, 101, "worker", {0, 9}, false});
  EXPECT_EQ(summary.to_json(0, 1).at("processes"), Json::parse(R"([
      {"pid": 100, "role": "host", "worker": 0, "exit_code": 0, "expected": true},
      {"pid": 101, "role": "worker", "worker": 2, "signal": 9, "expected": false}])"));
}

TEST(RecordSummaryTest, CommandsAreCountedByTheirExits) {
  Summary summary(spec_of(JobKind::kCommand), kStarted);
  for (int i = 0; i < 3; ++i) summary.on_event(WorkerEnded{0, 100 + i, "command", {0, 0}, true});
  summary.on_event(WorkerEnded{0, 200, "command", {10, 0}, true});
  summary.on_event(WorkerEnded{0, 201, "command", {3, 0}, true});
  summary.on_event(WorkerEnded{0, 202, "command", {0, 9}, true});
  const Json json = summary.to_json(0, 1);
  EXPECT_EQ(json.at("command_exits").dump(), R"({"0":3,"3":1,"10":1,"signal 9":1})");
  EXPECT_EQ(json.at("processes"), Json::array());
}

TEST(RecordSummaryTest, WarningsAndErrorsAreKeptUpToALimit) {
  Summary summary(spec_of(JobKind::kFunction), kStarted);
  summary.on_event(Notice{Notice::Kind::kInfo, "info"});
  summary.on_event(Notice{Notice::Kind::kExplain, "explain"});
  summary.on_event(Notice{Notice::Kind::kWarning, "careful"});
  summary.on_event(Notice{Notice::Kind::kError, "broken"});
  EXPECT_EQ(summary.to_json(0, 1).at("notices"),
            Json::parse(R"([{"kind": "warning", "text": "careful"}, {"kind": "error", "text": "broken"}])"));
  for (int i = 0; i < 2000; ++i) summary.on_event(Notice{Notice::Kind::kWarning, "again"});
  const Json notices = summary.to_json(0, 1).at("notices");
  EXPECT_EQ(notices.size(), 1001U);
  EXPECT_EQ(notices.back().at("text"), "1002 more are left out");
}

TEST(RecordSummaryTest, WritesTheFileWholeWhateverBytesItHolds) {
  std::string dir = testing::TempDir() + "record_summary_XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  Summary summary(spec_of(JobKind::kFunction), kStarted);
  summary.on_event(Notice{Notice::Kind::kWarning, "no UTF-8: \xFF"});
  ASSERT_TRUE(summary.write(dir + "/summary.json", 0, 1, OnDisk::kLater));
  std::ifstream file(dir + "/summary.json");
  EXPECT_EQ(Json::parse(file).at("job"), "digits");
  EXPECT_FALSE(fs::exists(dir + "/summary.json.tmp"));
  fs::remove_all(dir);
  const auto lost = summary.write(dir + "/summary.json", 0, 1, OnDisk::kLater);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, ::testing::HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace mprun
