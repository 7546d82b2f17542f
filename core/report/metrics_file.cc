#include "report/metrics_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "record/atomic_file.h"

namespace mprun {
namespace {

constexpr double kWriteEvery = 1, kRateEvery = 0.1;  // seconds

/// The value of a label: backslash, quote and newline are escaped.
std::string escaped_label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

class MetricsText {
 public:
  explicit MetricsText(const std::string& job) : job_(escaped_label(job)) {}

  /// Begins a metric; the samples of a counter have its name with "_total".
  void begin(const char* name, const char* type, const char* help) {
    sample_name_ = std::string(name) + (std::string_view(type) == "counter" ? "_total" : "");
    text_ += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", name, type, help);
  }
  template <typename Value>
  void sample(Value value) {
    text_ += fmt::format("{}{{job=\"{}\"}} {}\n", sample_name_, job_, value);
  }
  template <typename Value>
  void sample(const char* label, std::string_view name, Value value) {
    text_ += fmt::format("{}{{job=\"{}\",{}=\"{}\"}} {}\n", sample_name_, job_, label, name, value);
  }
  [[nodiscard]] std::string finish() { return std::move(text_) + "# EOF\n"; }

 private:
  std::string job_, sample_name_, text_;
};

void add_tasks(const Pulse& pulse, MetricsText* text) {
  const auto running = static_cast<std::uint64_t>(std::max(0, pulse.busy));
  text->begin("mprun_tasks", "gauge", "Tasks of the job by state; waiting only where their number is known.");
  text->sample("state", "ok", pulse.ok);
  text->sample("state", "failed", pulse.failed);
  text->sample("state", "cancelled", pulse.cancelled);
  text->sample("state", "running", running);
  if (pulse.total) {
    const std::uint64_t begun = pulse.done + running;
    text->sample("state", "waiting", *pulse.total > begun ? *pulse.total - begun : 0);
  }
  text->begin("mprun_task_retries", "counter", "Attempts that failed and were followed by another one.");
  text->sample(pulse.retried);
}

void add_workers(const Pulse& pulse, MetricsText* text) {
  text->begin("mprun_workers", "gauge", "Worker processes, ranks or commands by state.");
  text->sample("state", "busy", pulse.busy);
  text->sample("state", "idle", std::max(0, pulse.workers - pulse.busy));
}

void add_hangs(const JobMetrics& metrics, MetricsText* text) {
  text->begin("mprun_hangs", "counter", "Hangs reported in this session of the job by verdict.");
  for (std::size_t i = 0; i < metrics.hangs.size(); ++i) {
    text->sample("verdict", JobMetrics::kHangVerdicts[i], metrics.hangs[i]);
  }
}

}  // namespace

std::string openmetrics_text(const JobMetrics& metrics) {
  MetricsText text(metrics.job);
  text.begin("mprun_job_running", "gauge", "1 while the job runs, 0 once it has ended.");
  text.sample(metrics.running ? 1 : 0);
  text.begin("mprun_job_seconds", "gauge", "Seconds since this session of the job began.");
  text.sample(metrics.pulse.elapsed);
  add_tasks(metrics.pulse, &text);
  text.begin("mprun_tasks_per_second", "gauge", "Tasks that ended in the last seconds, per second.");
  text.sample(metrics.rate);
  add_workers(metrics.pulse, &text);
  add_hangs(metrics, &text);
  text.begin("mprun_memory_bytes", "gauge", "Memory (PSS) of all workers with their descendants.");
  text.sample(metrics.memory);
  return text.finish();
}

void MetricsFile::on_event(const JobEvent& event) {
  if (const auto* pulse = std::get_if<Pulse>(&event)) take(*pulse);
  if (const auto* hang = std::get_if<HangFound>(&event)) count(*hang);
  if (const auto* seen = std::get_if<WorkersSeen>(&event)) {
    metrics_.memory = 0;
    for (const WorkerView& worker : seen->workers) metrics_.memory += worker.memory;
  }
}

void MetricsFile::count(const HangFound& hang) {
  const auto& known = JobMetrics::kHangVerdicts;
  const auto* const found = std::find(known.begin(), known.end(), hang.verdict);
  if (found != known.end()) ++metrics_.hangs[static_cast<std::size_t>(found - known.begin())];
}

void MetricsFile::take(const Pulse& pulse) {
  metrics_.pulse = pulse;
  metrics_.running = pulse.phase != "finished";
  metrics_.pulse.phase = metrics_.pulse.doing = {};
  if (!metrics_.running) metrics_.memory = 0;
  if (pulse.elapsed >= next_rate_) {
    rate_.add(pulse.elapsed, pulse.done);
    next_rate_ = pulse.elapsed + kRateEvery;
  }
  if (metrics_.running && pulse.elapsed < next_write_) return;
  next_write_ = pulse.elapsed + kWriteEvery;
  write();
}

void MetricsFile::write() {
  metrics_.rate = rate_.per_second();
  const auto written = write_atomically(path_, openmetrics_text(metrics_), OnDisk::kLater);
  if (!written && !failure_) failure_ = written.error();
}

}  // namespace mprun
