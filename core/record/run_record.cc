#include "record/run_record.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "record/earlier_run.h"
#include "record/line_reader.h"
#include "record/result_line.h"

namespace mprun {
namespace {

RunRecord::End end_of(TaskStatus status) {
  if (status == TaskStatus::kOk) return RunRecord::End::kOk;
  return status == TaskStatus::kFailed ? RunRecord::End::kFailed : RunRecord::End::kCancelled;
}

void add_failure(RunRecord* run, RunRecord::Failure failure) {
  if (run->failures.size() < RunRecord::kMostFailures) run->failures.push_back(std::move(failure));
}

/// Makes phases of the stages of a journal: each lasts until the next one, until the start is over, or until the
/// process ends.
class PhaseReader {
 public:
  explicit PhaseReader(std::vector<RunRecord::Phase>* phases) : phases_(phases) {}

  void add(const WorkerStage& stage) {
    if (stage.first) open_.erase(stage.worker);  // when the start before it ended was not recorded
    close(stage.worker, stage.at);
    if (!stage.text.empty()) {
      open_[stage.worker] = {stage.worker, to_seconds(stage.at), 0, std::string(stage.text)};
    }
  }

  void close(int worker, Nanos at) {
    auto phase = open_.extract(worker);
    if (phase.empty() || at == 0 || phases_->size() >= RunRecord::kMostPhases) return;
    phase.mapped().seconds = std::max(0.0, to_seconds(at) - phase.mapped().start);
    phases_->push_back(std::move(phase.mapped()));
  }

 private:
  std::vector<RunRecord::Phase>* phases_;
  std::map<int, RunRecord::Phase> open_;  ///< by worker
};

void add_event(RunRecord* run, PhaseReader* phases, const JobEvent& event) {
  if (const auto* stage = std::get_if<WorkerStage>(&event)) {
    phases->add(*stage);
  } else if (const auto* process = std::get_if<WorkerEnded>(&event)) {
    phases->close(process->worker, process->at);
    run->processes.push_back({std::string(process->role), process->worker, process->pid, process->end,
                              process->expected, std::string(process->cpus)});
  } else if (const auto* retried = std::get_if<TaskRetried>(&event)) {
    run->attempts.push_back({retried->task, to_seconds(retried->start), to_seconds(retried->duration), retried->worker,
                             retried->attempt, RunRecord::End::kRetried});
    add_failure(run, {retried->task, retried->worker, retried->attempt, true, std::string(retried->reason)});
  } else if (const auto* hang = std::get_if<HangFound>(&event)) {
    run->hangs.push_back({std::string(hang->verdict), std::string(hang->cause), std::string(hang->file)});
  } else if (const auto* notice = std::get_if<Notice>(&event)) {
    run->notices.emplace_back(notice->kind == Notice::Kind::kError ? "error" : "warning", notice->text);
  }
}

Result<void> read_results_of(RunRecord* run) {
  const auto read = for_each_line(run->directory + "/results.jsonl", [run](std::string_view text, std::uint64_t) {
    const auto line = split_result_line(text);
    if (!line) return;
    run->attempts.push_back(
        {line->task, line->start, line->seconds, line->worker, line->attempt, end_of(line->status)});
    if (line->status == TaskStatus::kOk) return;
    add_failure(run, {line->task, line->worker, line->attempt, false, std::string(line->payload)});
  });
  if (!read) return read.error();
  return {};
}

void read_summary(RunRecord* run) {
  const auto summary = read_document(run->directory + "/summary.json", run->directory);
  if (!summary || !summary->value.is_object()) return;
  const Json& counts = summary->value.value("counts", Json::object());
  if (counts.contains("total") && counts["total"].is_number_unsigned()) run->total = counts["total"].get<TaskId>();
}

}  // namespace

Result<RunRecord> read_run(const std::string& run_dir) {
  RunRecord run;
  std::error_code error;
  run.directory = std::filesystem::absolute(run_dir, error).lexically_normal().string();
  PhaseReader phases(&run.phases);
  const auto sessions = read_journal(run.directory, [&](const JobEvent& event) { add_event(&run, &phases, event); });
  if (!sessions) return sessions.error();
  auto spec = read_document(run.directory + "/job.json", run.directory);
  if (!spec) return spec.error();
  run.spec = std::move(spec->value);
  run.job = sessions->origin.job;
  run.mprun = sessions->origin.mprun;
  run.sessions = sessions->sessions;
  run.started = to_seconds(sessions->started);
  for (const Nanos start : sessions->starts) run.starts.push_back(to_seconds(start));
  std::sort(run.starts.begin(), run.starts.end());
  if (sessions->ended) {
    run.seconds = sessions->seconds;
    run.exit_code = sessions->exit_code;
  }
  if (auto read = read_results_of(&run); !read) return read.error();
  read_summary(&run);
  return run;
}

}  // namespace mprun
