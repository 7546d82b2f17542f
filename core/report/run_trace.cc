#include <array>
#include <cmath>
#include <set>

#include "job/json_text.h"
#include "report/run_report.h"

namespace mprun {
namespace {

// Trace Event Format: "X" is a complete event, "M" names a process or a thread. Colours are names that viewers know.
constexpr int kProcess = 1;
constexpr std::array kNames = {"ok", "failed", "cancelled", "tried again"};
constexpr std::array kColours = {"good", "terrible", "grey", "bad"};

void add_name(std::string* out, const char* kind, int thread, const std::string& name) {
  *out += std::string("{\"ph\":\"M\",\"name\":\"") + kind + "\",\"pid\":" + std::to_string(kProcess) +
          ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":";
  append_json_string(out, name);
  *out += "}},\n";
}

}  // namespace

std::string run_trace(const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  const auto microseconds = [](double seconds) { return std::to_string(std::llround(seconds * 1e6)); };
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  add_name(&out, "process_name", 0, run.job);
  for (const WorkerUse& use : figures.workers) {
    add_name(&out, "thread_name", use.worker, "worker " + std::to_string(use.worker));
  }
  for (const RunRecord::Attempt& attempt : run.attempts) {
    if (attempt.start <= 0) continue;
    const auto end = static_cast<std::size_t>(attempt.end);
    const std::string task = std::to_string(attempt.task);
    out += R"({"ph":"X","cat":"task","name":"task )" + task + R"(","cname":")" + kColours[end] + R"(","pid":)" +
           std::to_string(kProcess) + R"(,"tid":)" + std::to_string(attempt.worker) + R"(,"ts":)" +
           microseconds(attempt.start - figures.begin) + R"(,"dur":)" + microseconds(attempt.seconds) +
           R"(,"args":{"task":)" + task + R"(,"attempt":)" + std::to_string(attempt.attempt) + R"(,"end":")" +
           kNames[end] + "\"}},\n";
  }
  out.erase(out.size() - 2);  // the last comma: there is at least the name of the process
  return out + "\n]}\n";
}

}  // namespace mprun
