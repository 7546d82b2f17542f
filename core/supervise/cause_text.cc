#include "supervise/cause_text.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace mprun {
namespace {

// "1.5 s"
std::string seconds(Nanos limit) {
  std::string text = std::to_string(to_seconds(limit));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

const char* type_of(Cause cause) {
  if (cause == Cause::kDeath) return "WorkerDied";
  if (cause == Cause::kHang) return "Hung";
  if (cause == Cause::kMemory) return "MemoryLimit";
  return cause == Cause::kTaskLimit ? "Timeout" : "Cancelled";
}

}  // namespace

std::string cause_text(Cause cause, const Policy& policy, int slot, const std::string& story) {
  switch (cause) {
    case Cause::kNone:
      return "";
    case Cause::kDeath:
    case Cause::kHang:
    case Cause::kMemory:
      return story;
    case Cause::kTaskLimit:
      return "it ran longer than limits.task_seconds (" + seconds(policy.task_limit.value_or(0)) + ") and was ended" +
             (story.empty() ? "" : ", at " + story);
    case Cause::kJobLimit:
      return "the job ran longer than limits.job_seconds (" + seconds(policy.job_limit.value_or(0)) + ")";
    case Cause::kInterrupted:
      return "the job was interrupted";
    case Cause::kErrorStop:
      return "the job was stopped by another task's failure";
    case Cause::kRankFailed:
      return "another rank failed";
    case Cause::kJoinLimit:
      return "worker " + std::to_string(slot) +
             " had finished its tasks but did not exit within limits.join_seconds (" + seconds(policy.join_limit) +
             "): it was ended, its results are kept";
  }
  return "";
}

std::string blame_text(TaskId task, const std::vector<Death>& deaths) {
  constexpr std::size_t kMostShown = 5;
  constexpr std::array<const char*, 6> kOrdinals = {"first", "second", "third", "fourth", "fifth", "last"};
  const auto alone = std::find_if(deaths.begin(), deaths.end(), [](const Death& death) { return death.alone; });
  if (deaths.size() < 2 || alone == deaths.end()) return "";
  std::string text = "; task " + std::to_string(task) + " ended " + std::to_string(deaths.size()) + " workers (";
  for (std::size_t i = 0; i < deaths.size() && i < kMostShown; ++i) {
    text += (i == 0 ? "pid " : ", pid ") + std::to_string(deaths[i].pid) + ": " + to_string(deaths[i].end);
  }
  if (deaths.size() > kMostShown) text += ", ...";
  const auto first_alone = static_cast<std::size_t>(alone - deaths.begin());
  text += "), alone ";
  text += first_alone + 1 == deaths.size() ? "on the " : "from the ";
  text += kOrdinals[std::min(first_alone, kOrdinals.size() - 1)];
  text += first_alone + 1 == deaths.size() ? "" : " on";
  const bool sent = std::any_of(deaths.begin(), deaths.end(), [](const Death& death) {
    return death.end.signal == SIGKILL || death.end.signal == SIGTERM;
  });
  return text + ": the task is at fault" + (sent ? ", unless another process sent the signals" : "");
}

JsonObject task_error(std::string_view type, std::string_view message, std::string_view traceback) {
  JsonObject error;
  error.bytes("type", type).bytes("message", message);
  traceback.empty() ? error.json("traceback", "null") : error.bytes("traceback", traceback);
  return error;
}

std::string cause_json(Cause cause, const std::string& text, const std::string& log) {
  JsonObject error = task_error(type_of(cause), text);
  if (cause == Cause::kDeath || cause == Cause::kTaskLimit || cause == Cause::kHang || cause == Cause::kMemory) {
    error.bytes("log", log);
  }
  return error.text();
}

}  // namespace mprun
