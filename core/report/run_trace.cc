#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "json/json_text.h"
#include "report/run_report.h"

namespace mprun {
namespace {

// Trace Event Format: "X" is a complete event, "M" names a process or a thread. Colours are names that viewers know.
constexpr std::array kColours = {"good", "terrible", "grey", "bad"};
constexpr const char* kPhaseColour = "thread_state_runnable";

/// Where a worker is drawn: all workers in one process, and hosts, whose numbers are negative, in another.
struct Track {
  explicit Track(int worker) : process(worker < 0 ? 2 : 1), thread(worker < 0 ? -1 - worker : worker) {}
  int process, thread;
};

/// An attempt, or a phase of a start.
struct Slice {
  int worker = 0;
  double start = 0, seconds = 0;
  const RunRecord::Attempt* attempt = nullptr;
  const RunRecord::Phase* phase = nullptr;
};

std::vector<Slice> slices_of(const RunRecord& run) {
  std::vector<Slice> slices;
  for (const RunRecord::Phase& phase : run.phases) {
    slices.push_back({phase.worker, phase.start, phase.seconds, nullptr, &phase});
  }
  for (const RunRecord::Attempt* attempt : attempts_by_worker(run)) {
    slices.push_back({attempt->worker, attempt->start, attempt->seconds, attempt, nullptr});
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.worker != b.worker ? a.worker < b.worker : a.start < b.start;
  });
  return slices;
}

void add_name(std::string* out, const char* kind, Track track, const std::string& name) {
  *out +=
      fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":)", kind, track.process, track.thread);
  append_json_string(out, name);
  *out += "}},\n";
}

void add_names(std::string* out, const RunRecord& run, const std::vector<Slice>& slices) {
  add_name(out, "process_name", Track(0), run.job);
  if (!slices.empty() && slices.front().worker < 0) add_name(out, "process_name", Track(-1), "hosts");
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const int worker = slices[i].worker;
    if (i > 0 && slices[i - 1].worker == worker) continue;
    add_name(out, "thread_name", Track(worker), worker < 0 ? "host" : "worker " + std::to_string(worker));
  }
}

void add_slice(std::string* out, const Slice& slice, long long begin, long long end) {
  const Track track(slice.worker);
  const std::string place =
      fmt::format(R"("pid":{},"tid":{},"ts":{},"dur":{})", track.process, track.thread, begin, end - begin);
  if (slice.phase != nullptr) {
    *out += fmt::format(R"({{"ph":"X","cat":"start","cname":"{}",{},"name":)", kPhaseColour, place);
    append_json_string(out, slice.phase->text);
    *out += "},\n";
    return;
  }
  const RunRecord::Attempt& attempt = *slice.attempt;
  *out += fmt::format(R"({{"ph":"X","cat":"task","name":"task {0}","cname":"{1}",{2},)"
                      R"("args":{{"task":{0},"attempt":{3},"end":"{4}"}}}},)"
                      "\n",
                      attempt.task, kColours[static_cast<std::size_t>(attempt.end)], place, attempt.attempt,
                      end_name(attempt.end));
}

}  // namespace

std::string run_trace(const RunRecord& run) {
  const std::vector<Slice> slices = slices_of(run);
  const auto first =
      std::min_element(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.start < b.start; });
  const auto microseconds = [](double seconds) { return std::llround(seconds * 1e6); };
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  add_names(&out, run, slices);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    const auto begin = microseconds(slice.start - first->start);
    auto end = begin + microseconds(slice.seconds);
    const bool last = i + 1 == slices.size() || slices[i + 1].worker != slice.worker;
    if (!last) end = std::min(end, microseconds(slices[i + 1].start - first->start));
    add_slice(&out, slice, begin, end);
  }
  out.erase(out.size() - 2);  // the last comma: there is at least the name of the process
  return out + "\n]}\n";
}

}  // namespace mprun
