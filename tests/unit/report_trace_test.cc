#include <gtest/gtest.h>

#include "json/document.h"
#include "json/json.h"
#include "report/run_report.h"

namespace mprun {
namespace {

[[nodiscard]] std::vector<Json> spans_of(const RunRecord& run) {
  const Json trace = Json::parse(run_trace(run));
  std::vector<Json> spans;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") == "X") spans.push_back(event);
  }
  return spans;
}

TEST(RunTraceTest, NothingOverlapsOnATrack) {
  RunRecord run;
  // Half microseconds are rounded; mprun's clock, by which a failed attempt ends, differs from the worker's.
  run.attempts = {{0, 100, 0.0000106, 1, 1, RunRecord::End::kOk},
                  {1, 100.0000106, 0.0000056, 1, 1, RunRecord::End::kOk},
                  {2, 100.0000162, 0.5, 1, 1, RunRecord::End::kRetried},
                  {3, 100.4, 0.1, 1, 1, RunRecord::End::kOk},
                  {4, 100.2, 0.7, 0, 1, RunRecord::End::kOk}};
  const auto spans = spans_of(run);
  ASSERT_EQ(spans.size(), 5U);
  EXPECT_EQ(spans[0].at("tid"), 0);
  EXPECT_EQ(spans[0].at("dur"), 700'000);  // another worker's does not matter
  for (std::size_t i = 1; i + 1 < spans.size(); ++i) {
    EXPECT_EQ(spans[i].at("tid"), 1);
    EXPECT_LE(spans[i].at("ts").get<long>() + spans[i].at("dur").get<long>(), spans[i + 1].at("ts").get<long>());
    EXPECT_GT(spans[i].at("dur"), 0);
  }
}

TEST(RunTraceTest, StartsPrecedeTheirTasks) {
  RunRecord run;
  run.attempts = {{0, 103, 1, 0, 1, RunRecord::End::kOk}};
  run.phases = {{-1, 100, 2, "importing \"job\".py"}, {0, 102, 1.5, "forking"}, {-2, 101, 1, "setup()"}};
  const auto spans = spans_of(run);
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0].at("name"), "setup()");
  EXPECT_EQ(spans[1].at("name"), "importing \"job\".py");
  EXPECT_EQ(spans[1].at("ts"), 0);
  EXPECT_EQ(spans[1].at("dur"), 2'000'000);
  EXPECT_NE(spans[0].at("tid"), spans[1].at("tid"));  // of another host
  EXPECT_NE(spans[1].at("pid"), spans[2].at("pid"));
  EXPECT_EQ(spans[2].at("name"), "forking");
  EXPECT_EQ(spans[2].at("dur"), 1'000'000);  // cut where the task begins
  EXPECT_EQ(spans[3].at("name"), "task 0");
  EXPECT_EQ(spans[3].at("tid"), spans[2].at("tid"));
}

TEST(RunTraceTest, ARunWithoutAttemptsIsATrace) { EXPECT_TRUE(spans_of(RunRecord{}).empty()); }

}  // namespace
}  // namespace mprun
