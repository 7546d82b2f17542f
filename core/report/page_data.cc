#include <algorithm>
#include <cmath>

#include "json/json.h"
#include "report/failure_digest.h"
#include "report/run_page.h"

namespace mprun {
namespace {

constexpr std::size_t kMostProcesses = 200;  // of a hang, that are drawn

std::int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

void append_varint(std::string* out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *out += static_cast<char>(number | 0x80);
  *out += static_cast<char>(number);
}

std::uint64_t zigzag(std::int64_t number) {
  return number < 0 ? 2 * (~static_cast<std::uint64_t>(number)) + 1 : 2 * static_cast<std::uint64_t>(number);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      three = three << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += at + i > bytes.size() ? '=' : kDigits[three >> (18 - 6 * i) & 0x3F];
    }
  }
  return out;
}

std::string packed(const std::vector<const RunRecord::Attempt*>& attempts, double zero) {
  std::string bytes;
  for (auto worker = attempts.begin(); worker != attempts.end();) {
    const auto end =
        std::find_if(worker, attempts.end(), [w = *worker](const auto* a) { return a->worker != w->worker; });
    append_varint(&bytes, static_cast<std::uint64_t>((*worker)->worker));
    append_varint(&bytes, static_cast<std::uint64_t>(end - worker));
    TaskId task = 0;
    std::int64_t start = 0;
    for (; worker != end; ++worker) {
      const RunRecord::Attempt& attempt = **worker;
      const std::int64_t begin = microseconds(attempt.start - zero);
      append_varint(&bytes, zigzag(static_cast<std::int64_t>(attempt.task - task)));
      append_varint(&bytes, static_cast<std::uint64_t>(begin - start));
      append_varint(&bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds(attempt.seconds), 0)));
      append_varint(&bytes, 4 * static_cast<std::uint64_t>(attempt.attempt) + static_cast<std::uint64_t>(attempt.end));
      task = attempt.task;
      start = begin;
    }
  }
  return bytes;
}

Json phases_json(const RunRecord& run, double zero) {
  Json list = Json::array();
  for (const RunRecord::Phase& phase : run.phases) {
    list.push_back({phase.worker, microseconds(phase.start - zero), microseconds(phase.seconds), phase.text});
  }
  return list;
}

Json failures_json(const RunRecord& run) {
  Json list = Json::array();
  for (const RunRecord::Failure& failure : run.failures) {
    const FailureText text = read_failure(failure.error);
    list.push_back({failure.task, failure.attempt, failure.retried ? text.message : text.headline()});
  }
  return list;
}

Json usage_json(const RunDetails& details, double zero) {
  if (!details.usage) return nullptr;
  const auto rounded = [](double value, double per_unit) { return std::round(value * per_unit) / per_unit; };
  Json steps = Json::array();
  std::map<int, std::pair<Json, Json>> workers;
  for (const UsageRecord::Step& step : details.usage->steps) {
    for (const auto& [worker, use] : step.workers) workers.try_emplace(worker, Json::array(), Json::array());
  }
  for (const UsageRecord::Step& step : details.usage->steps) {
    steps.push_back({rounded(step.begin - zero, 1e3), rounded(step.end - zero, 1e3), std::round(step.bytes)});
    for (auto& [worker, lists] : workers) {
      const auto use = step.workers.find(worker);
      const bool there = use != step.workers.end();
      const double seconds = step.end - step.begin;
      lists.first.push_back(there && seconds > 0 ? Json(rounded(use->second.cpu_seconds / seconds, 1e3)) : Json());
      lists.second.push_back(there ? Json(std::round(use->second.bytes)) : Json());
    }
  }
  Json list = Json::array();
  for (auto& [worker, lists] : workers) {
    list.push_back({worker, std::move(lists.first), std::move(lists.second)});
  }
  return {{"steps", std::move(steps)}, {"workers", std::move(list)}};
}

Json hangs_json(const RunDetails& details) {
  Json list = Json::array();
  for (const HangFile& hang : details.hangs) {
    Json report = hang.report;
    const auto processes = report.find("processes");
    if (processes != report.end() && processes->is_array() && processes->size() > kMostProcesses) {
      processes->erase(processes->begin() + kMostProcesses, processes->end());
    }
    list.push_back(std::move(report));
  }
  return list;
}

}  // namespace

std::string page_data(const RunRecord& run, const RunDetails& details) {
  const auto attempts = attempts_by_worker(run);
  double zero = run.started, end = run.started;
  const auto include = [&zero, &end](double start, double seconds) {
    zero = zero == 0 ? start : std::min(zero, start);
    end = std::max(end, start + seconds);
  };
  for (const RunRecord::Attempt* attempt : attempts) include(attempt->start, attempt->seconds);
  for (const RunRecord::Phase& phase : run.phases) include(phase.start, phase.seconds);
  Json sessions = Json::array();
  for (const double start : run.starts) sessions.push_back(microseconds(start - zero));
  const Json data = {{"zero", zero},
                     {"span", end - zero},
                     {"sessions", std::move(sessions)},
                     {"count", attempts.size()},
                     {"attempts", base64(packed(attempts, zero))},
                     {"phases", phases_json(run, zero)},
                     {"failures", failures_json(run)},
                     {"usage", usage_json(details, zero)},
                     {"hangs", hangs_json(details)}};
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;  // "<" begins a tag, even there; inside strings, its only place, it may be written otherwise
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace mprun
