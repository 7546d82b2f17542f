#include "record/summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utc_text.h"
#include "record/atomic_file.h"

namespace mprun {
namespace {

constexpr std::size_t kMostRoles = 16;  // the supervisor knows four

[[nodiscard]] double rounded(double value, double per_unit) { return std::round(value * per_unit) / per_unit; }

}  // namespace

Summary::Summary(const JobSpec& spec, Nanos started)
    : job_(spec.name),
      kind_(to_string(spec.kind)),
      start_method_(to_string(spec.start_method)),
      started_(started),
      has_commands_(spec.kind == JobKind::kCommand) {}

void Summary::on_event(const JobEvent& event) {
  if (const auto* ended = std::get_if<TaskEnded>(&event)) return add_task(ended->status);
  if (const auto* pulse = std::get_if<Pulse>(&event)) {
    counts_.total = pulse->total;
  } else if (std::holds_alternative<TaskRetried>(event)) {
    ++counts_.retried;
  } else if (const auto* process = std::get_if<WorkerEnded>(&event)) {
    add_process(*process);
  } else if (const auto* hang = std::get_if<HangFound>(&event)) {
    hangs_.push_back({{"verdict", hang->verdict}, {"cause", hang->cause}, {"file", hang->file}});
  } else if (const auto* notice = std::get_if<Notice>(&event)) {
    add_notice(*notice);
  }
}

void Summary::go_on(const Counts& counts, const EarlierSessions& sessions) {
  counts_.ok += counts.ok;
  counts_.failed += counts.failed;
  counts_.earlier = counts.ok + counts.failed;
  started_ = sessions.started;
  sessions_ = sessions.sessions + 1;
  earlier_seconds_ = sessions.seconds;
}

void Summary::add_task(TaskStatus status) {
  switch (status) {
    case TaskStatus::kOk:
      ++counts_.ok;
      break;
    case TaskStatus::kFailed:
      ++counts_.failed;
      break;
    case TaskStatus::kCancelled:
      ++counts_.cancelled;
      break;
  }
}

void Summary::add_process(const WorkerEnded& ended) {
  if (ended.role == "command") {
    has_commands_ = true;
    if (ended.end.signal > 0) {
      ++command_signals_[std::min<std::size_t>(static_cast<std::size_t>(ended.end.signal), 64)];
    } else {
      ++command_codes_[static_cast<std::size_t>(ended.end.exit_code) & 0xFF];
    }
    return;
  }
  auto role = std::find(roles_.begin(), roles_.end(), ended.role);
  if (role == roles_.end() && roles_.size() < kMostRoles) role = roles_.emplace(role, ended.role);
  if (role == roles_.end()) --role;
  processes_.push_back({ended.pid, ended.worker, ended.end.exit_code, static_cast<std::uint8_t>(ended.end.signal),
                        static_cast<std::uint8_t>(role - roles_.begin()), ended.expected});
}

void Summary::add_notice(const Notice& notice) {
  if (notice.kind != Notice::Kind::kWarning && notice.kind != Notice::Kind::kError) return;
  if (notices_.size() == kMostNotices) {
    ++notices_left_out_;
    return;
  }
  notices_.emplace_back(notice.kind, notice.text);
}

Json Summary::processes_json() const {
  Json list = Json::array();
  for (const Process& process : processes_) {
    Json entry = {{"pid", process.pid}, {"role", roles_[process.role]}, {"worker", process.worker}};
    if (process.signal != 0) {
      entry["signal"] = process.signal;
    } else {
      entry["exit_code"] = process.exit_code;
    }
    entry["expected"] = process.expected;
    list.push_back(std::move(entry));
  }
  return list;
}

Json Summary::command_exits_json() const {
  Json exits = Json::object();
  for (std::size_t code = 0; code < command_codes_.size(); ++code) {
    if (command_codes_[code] != 0) exits[std::to_string(code)] = command_codes_[code];
  }
  for (std::size_t signal = 0; signal < command_signals_.size(); ++signal) {
    if (command_signals_[signal] != 0) exits["signal " + std::to_string(signal)] = command_signals_[signal];
  }
  return exits;
}

Json Summary::to_json(int exit_code, double seconds) const {
  const auto or_null = [](std::optional<std::uint64_t> count) { return count ? Json(*count) : Json(nullptr); };
  seconds += earlier_seconds_;
  const double rate = seconds > 0 ? static_cast<double>(counts_.ok + counts_.failed) / seconds : 0;
  Json document = {{"version", 1},
                   {"job", job_},
                   {"kind", kind_},
                   {"start_method", start_method_},
                   {"exit_code", exit_code},
                   {"started", utc_text(started_)},
                   {"seconds", rounded(seconds, 1e6)},
                   {"sessions", sessions_}};
  document["counts"] = {{"total", or_null(counts_.total)},
                        {"ok", counts_.ok},
                        {"failed", counts_.failed},
                        {"cancelled", counts_.cancelled},
                        {"not_run", or_null(counts_.not_run())},
                        {"retried", counts_.retried}};
  document["tasks_per_second"] = rounded(rate, 1e3);
  document["processes"] = processes_json();
  if (has_commands_) document["command_exits"] = command_exits_json();
  Json notices = Json::array();
  for (const auto& [kind, text] : notices_) {
    notices.push_back({{"kind", kind == Notice::Kind::kError ? "error" : "warning"}, {"text", text}});
  }
  if (notices_left_out_ != 0) {
    notices.push_back({{"kind", "warning"}, {"text", std::to_string(notices_left_out_) + " more are left out"}});
  }
  document["notices"] = std::move(notices);
  document["hangs"] = hangs_;
  document["tensors"] = tensors_;
  document["shared"] = shared_;
  return document;
}

Result<void> Summary::write(const std::string& path, int exit_code, double seconds, OnDisk when) const {
  return write_atomically(path, indented(to_json(exit_code, seconds)), when);
}

}  // namespace mprun
