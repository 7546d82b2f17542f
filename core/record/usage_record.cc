#include "record/usage_record.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "json/json.h"
#include "json/json_check.h"
#include "record/line_reader.h"

namespace mprun {
namespace {

struct Seen {
  int worker;
  double cpu_seconds, bytes;
};

std::optional<Seen> seen_of(const Json& entry) {
  const bool right = entry.is_array() && entry.size() == 3 && entry[0].is_number_integer() && entry[1].is_number() &&
                     entry[2].is_number();
  if (!right) return std::nullopt;
  const auto worker = entry[0].get<std::int64_t>();
  const Seen seen{static_cast<int>(worker), entry[1].get<double>(), entry[2].get<double>()};
  const bool possible = worker >= 0 && worker <= INT32_MAX && seen.cpu_seconds >= 0 && seen.bytes >= 0;
  return possible && std::isfinite(seen.cpu_seconds + seen.bytes) ? std::optional(seen) : std::nullopt;
}

// Combines looks into steps, and doubles the looks in a step whenever there are too many steps.
class Reader {
 public:
  explicit Reader(const std::vector<double>& sessions) : sessions_(sessions) {}

  void take(std::string_view text) {
    const Json line = is_json(text) ? parse_json(text) : Json(Json::value_t::discarded);
    if (!line.is_object() || !line.contains("at") || !line["at"].is_number()) return;
    const auto workers = line.find("workers");
    const double at = line["at"].get<double>();
    if (workers == line.end() || !workers->is_array() || !(at >= last_)) return;
    const auto next = std::upper_bound(sessions_.begin(), sessions_.end(), at);
    const double session = next == sessions_.begin() ? at : *std::prev(next);
    UsageRecord::Step step{last_, at, 0, {}, record_.steps.empty() || session > last_};
    if (step.first) {
      step.begin = session;
      cpu_.clear();
    }
    for (const Json& entry : *workers) {
      if (const auto seen = seen_of(entry)) add(&step, *seen);
    }
    last_ = at;
    append(std::move(step));
  }

  std::optional<UsageRecord> finish() {
    return record_.steps.empty() ? std::nullopt : std::optional(std::move(record_));
  }

 private:
  void add(UsageRecord::Step* step, const Seen& seen) {
    const auto before = cpu_.find(seen.worker);
    double used = seen.cpu_seconds;  // of a process that was not there at the last look: all of it
    if (before != cpu_.end() && before->second <= seen.cpu_seconds) used -= before->second;
    cpu_[seen.worker] = seen.cpu_seconds;
    UsageRecord::Use& use = step->workers[seen.worker];
    use.cpu_seconds += used;
    use.bytes += seen.bytes;
    step->bytes += seen.bytes;
  }

  static void merge(UsageRecord::Step* into, const UsageRecord::Step& later) {
    into->end = later.end;
    into->bytes = std::max(into->bytes, later.bytes);
    for (const auto& [worker, use] : later.workers) {
      UsageRecord::Use& sum = into->workers[worker];
      sum.cpu_seconds += use.cpu_seconds;
      sum.bytes = std::max(sum.bytes, use.bytes);
    }
  }

  void append(UsageRecord::Step step) {
    workers_ = std::max(workers_, step.workers.size());
    auto& steps = record_.steps;
    if (!steps.empty() && !step.first && !steps.back().first && looks_ < looks_a_step_) {
      merge(&steps.back(), step);
      ++looks_;
      return;
    }
    steps.push_back(std::move(step));
    looks_ = 1;
    const std::size_t most = std::clamp(UsageRecord::kMostCells / std::max<std::size_t>(workers_, 1), std::size_t{100},
                                        UsageRecord::kMostSteps);
    if (steps.size() > most) halve();
  }

  void halve() {
    std::vector<UsageRecord::Step> fewer;
    bool open = false;  // the last of them takes one more
    for (UsageRecord::Step& step : record_.steps) {
      if (open && !step.first) {
        merge(&fewer.back(), step);
        open = false;
      } else {
        open = !step.first;
        fewer.push_back(std::move(step));
      }
    }
    record_.steps = std::move(fewer);
    looks_a_step_ *= 2;
    looks_ = looks_a_step_;  // the next look begins a step
  }

  const std::vector<double>& sessions_;
  UsageRecord record_;
  std::map<int, double> cpu_;  // of each worker's process, at the last look
  double last_ = 0;
  std::size_t workers_ = 0;
  std::size_t looks_a_step_ = 1, looks_ = 0;
};

}  // namespace

std::optional<UsageRecord> read_usage(const std::string& run_dir, const std::vector<double>& sessions) {
  Reader reader(sessions);
  const auto read =
      for_each_line(run_dir + "/usage.jsonl", [&reader](std::string_view line, std::uint64_t) { reader.take(line); });
  return read ? reader.finish() : std::nullopt;
}

}  // namespace mprun
