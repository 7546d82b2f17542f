#include <cmath>

#include "base/utc_text.h"
#include "json/json.h"
#include "report/hang_report.h"

namespace mprun {
namespace {

constexpr int kHangVersion = 1;
constexpr std::size_t kMostText = 4096;  // bytes of one text: a command line may have megabytes

// A text of any bytes, as JSON can hold it.
[[nodiscard]] Json text_json(const std::string& text) {
  const Json cut = text.size() <= kMostText ? text : text.substr(0, kMostText - 3) + "...";
  return Json::parse(cut.dump(-1, ' ', false, Json::error_handler_t::replace));
}

[[nodiscard]] Json seconds_json(double seconds) { return seconds < 0 ? Json() : Json(std::round(seconds * 1e3) / 1e3); }

[[nodiscard]] Json join_json(const std::optional<WaitingJoin>& join) {
  if (!join) return nullptr;
  const bool in_python = !join->file.empty();
  return {{"call", text_json(join->call)},
          {"pid", join->pid},
          {"tid", join->tid},
          {"file", in_python ? text_json(join->file) : Json()},
          {"line", in_python ? Json(join->line) : Json()},
          {"waiting_seconds", seconds_json(join->waiting_seconds)}};
}

[[nodiscard]] Json wait_json(const ThreadWait& wait) {
  if (wait.kind.empty()) return nullptr;  // it runs, or its wait is unknown
  Json json{{"kind", text_json(wait.kind)},
            {"timed", wait.timed},
            {"object", text_json(wait.object)},
            {"wakers", Json(wait.wakers)}};
  if (!wait.why_live.empty()) json["why_live"] = text_json(wait.why_live);
  return json;
}

[[nodiscard]] Json thread_json(const HungThread& thread) {
  Json python = Json::array();
  for (const PythonFrame& frame : thread.python) {
    python.push_back({{"file", text_json(frame.file)}, {"line", frame.line}, {"function", text_json(frame.function)}});
  }
  Json native = Json::array();
  for (const std::string& frame : thread.native) native.push_back(text_json(frame));
  if (thread.native_approximate && !thread.native.empty()) native.push_back("... (outer frames may be missing)");
  return {{"tid", thread.tid},
          {"name", text_json(thread.name)},
          {"state", text_json(thread.state)},
          {"wait", wait_json(thread.wait)},
          {"python", std::move(python)},
          {"native", std::move(native)}};
}

[[nodiscard]] Json process_json(const HungProcess& process) {
  Json threads = Json::array();
  for (const HungThread& thread : process.threads) threads.push_back(thread_json(thread));
  Json json{{"pid", process.pid},
            {"ppid", process.parent},
            {"command", text_json(process.command)},
            {"origin", process.forked ? "fork" : "exec"},
            {"threads", std::move(threads)}};
  if (!process.python_unread.empty()) json["python_unread"] = text_json(process.python_unread);
  return json;
}

[[nodiscard]] Json death_json(const RecordedDeath& death) {
  Json json{{"pid", death.pid}};
  if (death.end_known && death.end.signal != 0) json["signal"] = death.end.signal;
  if (death.end_known && death.end.signal == 0) json["exit_code"] = death.end.exit_code;
  json["at"] = utc_text(death.when);
  return json;
}

[[nodiscard]] Json running_json(const StillRunning& running) {
  const bool in_python = !running.file.empty();
  return {{"pid", running.pid},
          {"tid", running.tid},
          {"call", running.call.empty() ? Json() : text_json(running.call)},
          {"file", in_python ? text_json(running.file) : Json()},
          {"line", in_python ? Json(running.line) : Json()},
          {"why", text_json(running.why)},
          {"ends_in_seconds", seconds_json(running.ends_in)}};
}

}  // namespace

Json hang_json(const Hang& hang) {
  Json processes = Json::array();
  for (const HungProcess& process : hang.processes) processes.push_back(process_json(process));
  Json edges = Json::array();
  for (const WaitEdge& edge : hang.edges) {
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"why", text_json(edge.why)}});
  }
  Json deaths = Json::array();
  for (const RecordedDeath& death : hang.deaths) deaths.push_back(death_json(death));
  Json json{{"version", kHangVersion},
            {"verdict", to_string(hang.verdict)},
            {"seconds_since_progress", seconds_json(hang.seconds_since_progress)},
            {"join", join_json(hang.join)},
            {"cause",
             {{"id", text_json(hang.cause.id)},
              {"explanation", text_json(hang.cause.explanation)},
              {"fix", text_json(hang.cause.fix)}}},
            {"processes", std::move(processes)},
            {"edges", std::move(edges)},
            {"deaths", std::move(deaths)},
            {"cannot_return", Json(hang.cannot_return)}};
  for (const StillRunning& running : hang.still_running) json["still_runs"].push_back(running_json(running));
  if (hang.limit)
    json["limit"] = {{"label", text_json(hang.limit->label)}, {"seconds", seconds_json(hang.limit->seconds)}};
  return json;
}

}  // namespace mprun
