#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "json/json_text.h"
#include "report/run_report.h"

namespace mprun {
namespace {

// Trace Event Format: "X" is a complete event, "M" names a process or a thread. Colours are names that viewers know.
constexpr int kProcess = 1;
constexpr std::array kColours = {"good", "terrible", "grey", "bad"};

void add_name(std::string* out, const char* kind, int thread, const std::string& name) {
  *out += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":)", kind, kProcess, thread);
  append_json_string(out, name);
  *out += "}},\n";
}

}  // namespace

std::string run_trace(const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  const auto microseconds = [](double seconds) { return std::llround(seconds * 1e6); };
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  add_name(&out, "process_name", 0, run.job);
  for (const WorkerFigures& use : figures.workers) {
    add_name(&out, "thread_name", use.worker, "worker " + std::to_string(use.worker));
  }
  const auto attempts = attempts_by_worker(run);
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const RunRecord::Attempt& attempt = *attempts[i];
    const auto begin = microseconds(attempt.start - figures.begin);
    auto end = begin + microseconds(attempt.seconds);
    const bool last = i + 1 == attempts.size() || attempts[i + 1]->worker != attempt.worker;
    if (!last) end = std::min(end, microseconds(attempts[i + 1]->start - figures.begin));
    out +=
        fmt::format(R"({{"ph":"X","cat":"task","name":"task {0}","cname":"{1}","pid":{2},"tid":{3},"ts":{4},"dur":{5},)"
                    R"("args":{{"task":{0},"attempt":{6},"end":"{7}"}}}},)"
                    "\n",
                    attempt.task, kColours[static_cast<std::size_t>(attempt.end)], kProcess, attempt.worker, begin,
                    end - begin, attempt.attempt, end_name(attempt.end));
  }
  out.erase(out.size() - 2);  // the last comma: there is at least the name of the process
  return out + "\n]}\n";
}

}  // namespace mprun
