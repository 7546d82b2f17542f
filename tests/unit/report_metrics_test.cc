// The metrics of a job: the text, and when it is written. tests/integration/test_metrics.py parses what a real job
// leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/metrics_file.h"

namespace mprun {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Pulse pulse_at(double elapsed, std::uint64_t done) {
  Pulse pulse;
  pulse.elapsed = elapsed;
  pulse.done = pulse.ok = done;
  pulse.total = 100;
  pulse.busy = 3;
  pulse.workers = 4;
  pulse.phase = "running";
  return pulse;
}

TEST(OpenMetrics, HasTypeHelpAndSamplesOfEach) {
  JobMetrics metrics;
  metrics.job = "digits";
  metrics.pulse = pulse_at(2.5, 40);
  metrics.pulse.retried = 2;
  metrics.hangs[0] = 1;
  metrics.memory = 1 << 20;
  const std::string text = openmetrics_text(metrics);
  EXPECT_THAT(text, HasSubstr("# TYPE mprun_tasks gauge\n# HELP mprun_tasks "));
  EXPECT_THAT(text, HasSubstr("\nmprun_tasks{job=\"digits\",state=\"ok\"} 40\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_tasks{job=\"digits\",state=\"running\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_tasks{job=\"digits\",state=\"waiting\"} 57\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE mprun_task_retries counter\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_task_retries_total{job=\"digits\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_workers{job=\"digits\",state=\"idle\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_hangs_total{job=\"digits\",verdict=\"deadlock\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_memory_bytes{job=\"digits\"} 1048576\n"));
  EXPECT_THAT(text, HasSubstr("\nmprun_job_seconds{job=\"digits\"} 2.5\n"));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST(OpenMetrics, EscapesTheJobsName) {
  JobMetrics metrics;
  metrics.job = "a\"b\\c\nd";
  EXPECT_THAT(openmetrics_text(metrics), HasSubstr("{job=\"a\\\"b\\\\c\\nd\"}"));
}

TEST(OpenMetrics, LeavesOutWhatIsNotKnown) { EXPECT_THAT(openmetrics_text(JobMetrics()), Not(HasSubstr("waiting\""))); }

class MetricsFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string read() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string path_ = testing::TempDir() + "mprun-metrics.prom";
};

TEST_F(MetricsFileTest, IsWrittenOnceASecondAndAtTheEnd) {
  MetricsFile file(path_, "digits");
  file.on_event(pulse_at(0, 0));
  EXPECT_THAT(read(), HasSubstr("state=\"ok\"} 0\n"));
  file.on_event(pulse_at(0.9, 5));
  EXPECT_THAT(read(), HasSubstr("state=\"ok\"} 0\n"));
  file.on_event(pulse_at(1.1, 6));
  EXPECT_THAT(read(), HasSubstr("state=\"ok\"} 6\n"));
  EXPECT_THAT(read(), HasSubstr("mprun_job_running{job=\"digits\"} 1\n"));
  file.on_event(HangFound{"", "orphaned-lock", "", ""});
  Pulse last = pulse_at(1.2, 7);
  last.phase = "finished";
  file.on_event(last);
  EXPECT_THAT(read(), HasSubstr("state=\"ok\"} 7\n"));
  EXPECT_THAT(read(), HasSubstr("verdict=\"orphaned-lock\"} 1\n"));
  EXPECT_THAT(read(), HasSubstr("mprun_job_running{job=\"digits\"} 0\n"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
  std::filesystem::remove(path_);
}

TEST_F(MetricsFileTest, SaysWhyItCannotBeWritten) {
  MetricsFile file(path_ + "/no/such/folder", "digits");
  file.on_event(pulse_at(0, 0));
  ASSERT_TRUE(file.failure());
  EXPECT_THAT(file.failure()->message, HasSubstr("no/such/folder"));
}

}  // namespace
}  // namespace mprun
