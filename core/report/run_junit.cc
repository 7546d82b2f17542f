#include <fmt/format.h>

#include <map>

#include "base/utc_text.h"
#include "report/failure_digest.h"
#include "report/run_report.h"
#include "report/safe_text.h"

namespace mprun {

std::string run_junit(const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  std::map<TaskId, const RunRecord::Failure*> errors;
  for (const RunRecord::Failure& failure : run.failures) {
    if (!failure.retried) errors[failure.task] = &failure;
  }
  const std::string job = escaped(run.job);
  const std::string counts =
      fmt::format(R"(tests="{}" failures="{}" errors="0" skipped="{}" time="{:.6f}")", figures.done(), figures.failed,
                  figures.cancelled, run.seconds.value_or(figures.end - figures.begin));
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mprun\" " + counts + ">\n";
  out += fmt::format("<testsuite name=\"{}\" {} timestamp=\"{}\">\n", job, counts,
                     utc_text(from_seconds(run.started)).substr(0, 19));
  for (const RunRecord::Attempt& attempt : run.attempts) {
    if (attempt.end == RunRecord::End::kRetried) continue;
    out += fmt::format(R"(<testcase classname="{}" name="task {}" time="{:.6f}")", job, attempt.task, attempt.seconds);
    if (attempt.end == RunRecord::End::kOk) {
      out += "/>\n";
      continue;
    }
    const auto known = errors.find(attempt.task);
    const std::string error = known == errors.end() ? "" : known->second->error;
    const FailureText text = read_failure(error);
    if (attempt.end == RunRecord::End::kCancelled) {
      out += ">\n<skipped message=\"" + escaped(text.message) + "\"/>\n</testcase>\n";
      continue;
    }
    out += ">\n<failure type=\"" + escaped(text.type) + "\" message=\"" + escaped(text.message) + "\">" +
           escaped(traceback_of(error)) + "</failure>\n</testcase>\n";
  }
  return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace mprun
