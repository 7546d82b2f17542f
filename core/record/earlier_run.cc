#include "record/earlier_run.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/utc_text.h"
#include "json/json.h"
#include "json/json_check.h"
#include "json/words.h"
#include "os/fd.h"
#include "record/journal.h"
#include "record/line_reader.h"
#include "record/result_line.h"
#include "record/run_directory.h"
#include "record/whole_number.h"

namespace mprun {
namespace {

// Values beyond these were not written by an mprun, and are ignored.
constexpr std::int64_t kLatestSecond = INT64_MAX / kNanosPerSecond - 1;  // since 1970
constexpr int kMostSessions = 100'000'000;
constexpr double kMostSeconds = 1e9;  // of one session

void drop(EarlierResults* results, std::uint64_t begin, std::uint64_t end) {
  if (!results->dropped.empty() && results->dropped.back().second == begin) {
    results->dropped.back().second = end;
  } else {
    results->dropped.emplace_back(begin, end);
  }
}

/// 0 for anything but a valid time.
Nanos nanos_of(const Json& text) {
  std::tm parts{};
  if (!text.is_string()) return 0;
  const auto& written = text.get_ref<const std::string&>();
  const char* const rest = strptime(written.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  const std::int64_t seconds = timegm(&parts);
  const double fraction = *rest == '.' ? std::strtod(rest, nullptr) : 0;
  if (seconds < 0 || seconds > kLatestSecond || !(fraction >= 0 && fraction < 1)) return 0;
  return seconds * kNanosPerSecond + from_seconds(fraction);
}

/// nullopt unless it is a whole number of at least 1 that leaves room for more.
std::optional<int> session_number(const Json& number) {
  if (!number.is_number_integer()) return std::nullopt;
  const auto session = number.get<std::int64_t>();
  return session >= 1 && session <= kMostSessions ? std::optional(static_cast<int>(session)) : std::nullopt;
}

/// Why a line does not begin a journal that this mprun can continue; nullopt: it does.
std::optional<Error> check_first_line(const std::string& path, const Json& line) {
  if (!line.is_object() || !line.contains("journal")) {
    return usage_error(path + " does not begin as a journal does: the run cannot be resumed");
  }
  if (line["journal"] != kJournalVersion) {
    const Json mprun = line.value("mprun", Json());
    return usage_error(path + " has version " + clip(line["journal"].dump(), 40) + ", and this mprun knows " +
                       std::to_string(kJournalVersion) + " only: resume it with the mprun " +
                       (mprun.is_string() ? clip(mprun.get<std::string>(), 40) : "") + " that began it");
  }
  if (!line.contains("started") || !line.contains("origin")) {
    return usage_error(path + " does not begin as a journal does: the run cannot be resumed");
  }
  return std::nullopt;
}

// Replays one line of the journal as the event that it records. Views in the event point into `line`.
void replay_line(const Json& line, const std::function<void(const JobEvent&)>& replay) {
  const auto text = [](const Json& object, const char* key) -> std::string_view {
    return object.at(key).get_ref<const std::string&>();
  };
  const auto nanos = [](const Json& object, const char* key) -> Nanos {
    const auto seconds = object.at(key).get<double>();
    return seconds >= 0 && seconds <= static_cast<double>(kLatestSecond) ? from_seconds(seconds) : 0;
  };
  if (line.contains("process")) {
    const Json& process = line["process"];
    WorkerEnded ended;
    ended.worker = whole_number<int>(process.at("worker"));
    ended.pid = whole_number<std::int32_t>(process.at("pid"));
    ended.role = text(process, "role");
    ended.end.exit_code = whole_number<int>(process.at("exit_code"));
    ended.end.signal = whole_number<int>(process.at("signal"));
    ended.expected = process.at("expected").get<bool>();
    if (process.contains("at")) ended.at = nanos(process, "at");  // the first mpruns did not write it
    if (process.contains("cpus")) ended.cpus = text(process, "cpus");
    replay(ended);
  } else if (line.contains("stage")) {
    const Json& stage = line["stage"];
    replay(WorkerStage{whole_number<int>(stage.at("worker")), text(stage, "text"), nanos(stage, "at"),
                       stage.at("first").get<bool>()});
  } else if (line.contains("retried")) {
    const Json& retried = line["retried"];
    replay(TaskRetried{whole_number<TaskId>(retried.at("task")), whole_number<int>(retried.at("attempt")),
                       whole_number<int>(retried.at("worker")), text(retried, "reason"), nanos(retried, "start"),
                       nanos(retried, "seconds")});
  } else if (line.contains("notice")) {
    const Json& notice = line["notice"];
    replay(
        Notice{text(notice, "kind") == "error" ? Notice::Kind::kError : Notice::Kind::kWarning, text(notice, "text")});
  } else if (line.contains("hang")) {
    const Json& hang = line["hang"];
    replay(HangFound{"", text(hang, "verdict"), text(hang, "cause"), text(hang, "file")});
  }
}

}  // namespace

std::optional<Json> tensors_of(std::string_view line, const ResultLine& result) {
  constexpr std::string_view kTensors = R"(,"tensors":[{"name":)";
  if (result.payload.find(kTensors) == std::string_view::npos) return Json();
  const Json whole = parse_escaped_json(line);
  if (!whole.is_object()) return std::nullopt;
  return whole.value("tensors", Json());  // or it is within the value
}

Result<EarlierResults> read_results(const std::string& path, const KeepRule& rule) {
  EarlierResults results;
  const auto take = [&](std::string_view line, std::uint64_t offset) {
    const auto result = split_result_line(line);
    const auto tensors = result && is_json(line) ? tensors_of(line, *result) : std::nullopt;
    const bool counts = tensors && result->task < rule.tasks && rule.mine.has(result->task) &&
                        result->status != TaskStatus::kCancelled &&
                        (rule.failed || result->status == TaskStatus::kOk) && !results.ended.has(result->task) &&
                        (tensors->is_null() || (offset < rule.certain && rule.tensors_hold(result->task, *tensors)));
    if (!counts) {
      drop(&results, offset, offset + line.size() + 1);
      return;
    }
    results.kept.emplace_back(result->task, offset);
    results.ended.add(result->task, result->task + 1);
    ++(result->status == TaskStatus::kOk ? results.counts.ok : results.counts.failed);
  };
  const auto bytes = for_each_line(path, take);
  if (!bytes) return bytes.error();
  results.bytes = *bytes;
  if (rule.all_or_none && results.counts.ok != *rule.all_or_none) {
    EarlierResults none;
    none.bytes = results.bytes;
    if (none.bytes > 0) drop(&none, 0, none.bytes);
    return none;
  }
  return results;
}

std::uint64_t certain_bytes(const EarlierSessions& sessions) {
  return sessions.boot == boot_id() ? UINT64_MAX : sessions.certain;
}

Result<EarlierSessions> read_journal(const std::string& run_dir, const std::function<void(const JobEvent&)>& replay) {
  if (auto found = RunDirectory::find(run_dir); !found) return found.error();
  struct stat info {};
  const std::string path = run_dir + "/" + kJournalName;
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return usage_error("cannot look at " + path + ": " + std::strerror(errno));
    const bool run = stat((run_dir + "/results.jsonl").c_str(), &info) == 0;
    if (stat((run_dir + "/shards").c_str(), &info) == 0) {
      return usage_error(run_dir + " holds the shards of a run, which are to be joined first: mprun merge " + run_dir);
    }
    return usage_error(run ? run_dir + " was written by an mprun that kept no journal: it cannot be resumed; " +
                                 "run the job again"
                           : run_dir + " is not a run directory: it has no " + kJournalName);
  }
  EarlierSessions found;
  std::optional<Error> fault;
  const auto take = [&](std::string_view text, std::uint64_t offset) {
    // To nlohmann the first zero byte ends the text, whatever a power cut left after it.
    const Json line = is_json(text) ? parse_json(text) : Json(Json::value_t::discarded);
    if (fault || (line.is_discarded() && offset != 0)) return;
    if (offset == 0) {
      fault = check_first_line(path, line);
      if (fault) return;
      found.sessions = 1;
      found.started = nanos_of(line["started"]);
      found.starts.push_back(found.started);
    }
    try {
      if (line.contains("session")) {
        found.sessions = session_number(line["session"]).value_or(found.sessions);
        found.ended = false;
        found.certain = 0;
        if (line.contains("started")) found.starts.push_back(nanos_of(line["started"]));
      }
      if (line.contains("boot")) found.boot = line["boot"].get<std::string>();
      if (line.contains("certain")) found.certain = whole_number<std::uint64_t>(line["certain"]);
      if (line.contains("ended")) {
        found.ended = true;
        if (line["ended"].value("on_disk", true)) found.certain = UINT64_MAX;
        const auto seconds = line["ended"].at("seconds").get<double>();
        if (seconds >= 0 && seconds <= kMostSeconds) found.seconds += seconds;
        found.exit_code = whole_number<int>(line["ended"].at("exit_code"));
      }
      if (line.contains("origin")) {
        auto origin = provenance_from_json(line["origin"]);
        if (!origin) {
          fault = usage_error(path + " does not say what the run was made from: " + origin.error().message);
          return;
        }
        found.origin = std::move(*origin);
      }
      replay_line(line, replay);
    } catch (const Json::exception&) {
      return;  // a line that a power cut half overwrote: only an entry of the summary is lost
    }
  };
  const auto bytes = for_each_line(path, take);
  if (!bytes) return bytes.error();
  if (fault) return *fault;
  if (*bytes == 0) return usage_error(path + " is empty: mprun ended before the run began; run the job again");
  found.bytes = *bytes;
  return found;
}

}  // namespace mprun
