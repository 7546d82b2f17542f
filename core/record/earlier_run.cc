#include "record/earlier_run.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/utc_text.h"
#include "job/words.h"
#include "os/fd.h"
#include "record/journal.h"
#include "record/line_reader.h"
#include "record/whole_number.h"

namespace mprun {
namespace {

// What is beyond these was not written by an mprun, and is as nothing.
constexpr std::int64_t kLatestSecond = INT64_MAX / kNanosPerSecond - 1;  // since 1970
constexpr int kMostSessions = 100'000'000;
constexpr double kMostSeconds = 1e9;  // of one session

// Its implicit move moves a nlohmann value, which clang-tidy cannot see through.
struct ResultLine {  // NOLINT(bugprone-exception-escape)
  std::uint64_t task = 0;
  TaskStatus status = TaskStatus::kOk;
  Json tensors;
};

/// To nlohmann the first zero is the end of the text, whatever a power cut has left behind it.
bool has_zeros(std::string_view line) { return line.find('\0') != line.npos; }

/// Whatever is no line of ResultsWriter is nothing.
std::optional<ResultLine> parse_result(std::string_view line) {
  constexpr std::string_view kHead = R"({"task":)";
  constexpr std::string_view kStatus = R"(,"status":")";
  constexpr std::string_view kTensors = R"(,"tensors":[{"name":)";
  if (line.substr(0, kHead.size()) != kHead || has_zeros(line)) return std::nullopt;
  ResultLine result;
  const char* const end = line.data() + line.size();
  const auto number = std::from_chars(line.data() + kHead.size(), end, result.task);
  if (number.ec != std::errc()) return std::nullopt;
  std::string_view rest(number.ptr, static_cast<std::size_t>(end - number.ptr));
  if (rest.substr(0, kStatus.size()) != kStatus) return std::nullopt;
  rest.remove_prefix(kStatus.size());
  const std::string_view status = rest.substr(0, rest.find('"'));
  if (status == "ok") {
    result.status = TaskStatus::kOk;
  } else if (status == "failed") {
    result.status = TaskStatus::kFailed;
  } else if (status == "cancelled") {
    result.status = TaskStatus::kCancelled;
  } else {
    return std::nullopt;
  }
  if (rest.find(kTensors) == rest.npos) return Json::accept(line) ? std::optional(std::move(result)) : std::nullopt;
  Json whole = Json::parse(line, nullptr, false);
  if (whole.is_discarded()) return std::nullopt;
  if (whole.contains("tensors")) result.tensors = std::move(whole["tensors"]);  // else it is within the value
  return result;
}

void drop(EarlierResults* results, std::uint64_t begin, std::uint64_t end) {
  if (!results->dropped.empty() && results->dropped.back().second == begin) {
    results->dropped.back().second = end;
  } else {
    results->dropped.emplace_back(begin, end);
  }
}

/// 0 for what is no time of this mprun's life.
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

/// Nothing, unless it is a whole number of at least 1 that leaves room for more.
std::optional<int> session_number(const Json& number) {
  if (!number.is_number_integer()) return std::nullopt;
  const auto session = number.get<std::int64_t>();
  return session >= 1 && session <= kMostSessions ? std::optional(static_cast<int>(session)) : std::nullopt;
}

/// Why a line does not begin a journal that this mprun can go on with; nullopt: it does.
std::optional<Error> check_first_line(const std::string& path, const Json& line) {
  if (!line.is_object() || !line.contains("journal")) {
    return usage_error(path + " does not begin as a journal does: the run cannot be resumed");
  }
  if (line["journal"] != kJournalVersion) {
    const Json mprun = line.value("mprun", Json());
    return usage_error(path + " has version " + job::clip(line["journal"].dump(), 40) + ", and this mprun knows " +
                       std::to_string(kJournalVersion) + " only: resume it with the mprun " +
                       (mprun.is_string() ? job::clip(mprun.get<std::string>(), 40) : "") + " that began it");
  }
  if (!line.contains("started") || !line.contains("origin")) {
    return usage_error(path + " does not begin as a journal does: the run cannot be resumed");
  }
  return std::nullopt;
}

// One line of the journal, told as the event it was. Views in the event are into `line`.
void replay_line(const Json& line, const std::function<void(const JobEvent&)>& replay) {
  const auto text = [](const Json& object, const char* key) -> std::string_view {
    return object.at(key).get_ref<const std::string&>();
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
    replay(ended);
  } else if (line.contains("retried")) {
    const Json& retried = line["retried"];
    replay(TaskRetried{whole_number<TaskId>(retried.at("task")), whole_number<int>(retried.at("attempt")),
                       whole_number<int>(retried.at("worker")), ""});
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

Result<EarlierResults> read_results(const std::string& path, const KeepRule& rule) {
  EarlierResults results;
  const auto take = [&](std::string_view line, std::uint64_t offset) {
    const auto result = parse_result(line);
    const bool counts = result && result->task < rule.tasks && result->status != TaskStatus::kCancelled &&
                        (rule.failed || result->status == TaskStatus::kOk) && !results.ended.has(result->task) &&
                        (result->tensors.is_null() || rule.tensors_hold(result->task, result->tensors));
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

Result<EarlierSessions> read_journal(const std::string& run_dir, const std::function<void(const JobEvent&)>& replay) {
  struct stat info {};
  if (stat(run_dir.c_str(), &info) != 0) return usage_error("there is no run directory " + run_dir);
  const std::string path = run_dir + "/" + kJournalName;
  if (stat(path.c_str(), &info) != 0) {
    const bool run = stat((run_dir + "/results.jsonl").c_str(), &info) == 0;
    return usage_error(run ? run_dir + " was written by an mprun that kept no journal: it cannot be resumed; " +
                                 "run the job anew"
                           : run_dir + " is not a run directory: it has no " + kJournalName);
  }
  EarlierSessions found;
  std::optional<Error> fault;
  const auto take = [&](std::string_view text, std::uint64_t offset) {
    const Json line = Json::parse(text, nullptr, false);
    if (fault || ((line.is_discarded() || has_zeros(text)) && offset != 0)) return;
    if (offset == 0) {
      fault = check_first_line(path, line);
      if (fault) return;
      found.sessions = 1;
      found.started = nanos_of(line["started"]);
    }
    try {
      if (line.contains("session")) {
        found.sessions = session_number(line["session"]).value_or(found.sessions);
        found.ended = false;
      }
      if (line.contains("ended")) {
        found.ended = true;
        const auto seconds = line["ended"].at("seconds").get<double>();
        if (seconds >= 0 && seconds <= kMostSeconds) found.seconds += seconds;
      }
      if (line.contains("origin")) {
        auto origin = origin_from_json(line["origin"]);
        if (!origin) {
          fault = usage_error(path + " does not say what the run was made from: " + origin.error().message);
          return;
        }
        found.origin = std::move(*origin);
      }
      replay_line(line, replay);
    } catch (const Json::exception&) {
      return;  // a line that was half overwritten by a power cut: nothing but an entry of the summary
    }
  };
  const auto bytes = for_each_line(path, take);
  if (!bytes) return bytes.error();
  if (fault) return *fault;
  if (*bytes == 0) return usage_error(path + " is empty: mprun ended before the run began; run the job anew");
  found.bytes = *bytes;
  return found;
}

}  // namespace mprun
