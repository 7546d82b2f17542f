#include "run/job_records.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/exit_codes.h"
#include "json/json.h"
#include "record/atomic_file.h"
#include "report/run_report.h"
#include "run/obey_signals.h"
#include "run/resolve_request.h"
#include "supervise/command_pool.h"

namespace mprun {

std::vector<Sink*> JobRecords::sinks() const {
  // Tensors come before the results that need them on disk.
  std::vector<Sink*> sinks{journal.get(), tensors.get(), results.get(), joblog.get(),
                           summary.get(), report.get(),  usage.get(),   job_log.get()};
  if (metrics) sinks.push_back(metrics.get());
  if (blocks) sinks.push_back(blocks.get());  // after the results: a block is done when they have all
  return sinks;
}

void JobRecords::warn(const std::vector<std::string>& warnings, LogComponent from) const {
  for (const std::string& text : warnings) {
    for (Sink* sink : std::initializer_list<Sink*>{journal.get(), summary.get(), report.get(), job_log.get()}) {
      sink->on_event(Notice{Notice::Kind::kWarning, text, from});
    }
  }
}

void JobRecords::say(const Notice& notice) const {
  report->on_event(notice);
  job_log->on_event(notice);
}

void JobRecords::fail(const std::string& message) const {
  report->print("mprun: " + message + "\n");
  log->write(LogComponent::kRecord, LogLevel::kError, message);
}

Result<Earlier> read_earlier(const JobRequest& request, const Plan& plan, const Tasks& tasks,
                             const RunDirectory& directory, TensorFiles* tensors) {
  const JobSpec& spec = plan.resolved.spec;
  KeepRule rule;
  rule.certain = plan.certain;
  rule.tasks = tasks.all.value_or(rule.tasks);
  rule.mine = tasks.mine;
  rule.failed = !request.retry_failed;
  if (spec.kind == JobKind::kRanks) rule.all_or_none = static_cast<std::uint64_t>(spec.processes);
  // Ranks of other shards cannot begin again without ours.
  if (rule.all_or_none && spec.shard.value_or(Shard{}).count > 1) rule.all_or_none = UINT64_MAX;
  rule.tensors_hold = [tensors](TaskId task, const Json& named) { return tensors->restore(task, named); };
  auto results = read_results(directory.file("results.jsonl"), rule);
  if (!results) return results.error();
  const auto ready = tensors->go_on();
  if (!ready) return ready.error();
  return Earlier{std::move(*results), true, *ready};
}

namespace {

CommandText command_text(const JobSpec& spec) {
  if (spec.kind != JobKind::kCommand) return function_command_text(spec);
  return [command = spec.command](std::string* out, const TaskEnded& ended) {
    const std::size_t begin = out->size();
    for (const std::string& word : fill_command(command, ended.input, ended.task, ended.worker)) {
      if (out->size() > begin) *out += ' ';
      append_shell_word(out, word);
    }
  };
}

Result<void> open_earlier_records(const JobSpec& spec, const RunDirectory& directory, const Plan& plan,
                                  const Earlier& earlier, const ResultsOptions& options, JobRecords* records) {
  if (plan.changed) {
    if (auto put = directory.put_spec(plan.resolved.merged, records->when); !put) return put;
  }
  auto results = ResultsWriter::reopen(options, earlier.results);
  if (!results) return results.error();
  records->results = std::move(*results);
  const auto sessions =
      read_journal(directory.path(), [records](const JobEvent& event) { records->summary->on_event(event); });
  if (!sessions) return sessions.error();
  records->summary->go_on(earlier.results.counts, *sessions);
  Journal::Session session{sessions->bytes, sessions->sessions + 1};
  if (earlier.certain) session.certain = records->results->bytes();
  if (plan.changed) session.origin = &plan.origin;
  auto journal = Journal::reopen(directory.file(kJournalName), session);
  if (!journal) return journal.error();
  records->journal = std::move(*journal);
  auto joblog = JoblogWriter::reopen(directory.file("joblog.tsv"), command_text(spec));
  if (!joblog) return joblog.error();
  records->joblog = std::move(*joblog);
  return {};
}

Result<void> open_new_records(const JobSpec& spec, const RunDirectory& directory, const Plan& plan,
                              const ResultsOptions& options, JobRecords* records) {
  auto results = ResultsWriter::open(options);
  if (!results) return results.error();
  records->results = std::move(*results);
  auto joblog = JoblogWriter::open(directory.file("joblog.tsv"), command_text(spec));
  if (!joblog) return joblog.error();
  records->joblog = std::move(*joblog);
  auto journal = Journal::create(directory.file(kJournalName), plan.origin);
  if (!journal) return journal.error();
  records->journal = std::move(*journal);
  return {};
}

}  // namespace

Result<void> open_records(const JobRequest& request, const Plan& plan, const RunDirectory& directory,
                          const Earlier& earlier, const ShardTasks& tasks, const Guard& guard, JobRecords* records) {
  const JobSpec& spec = plan.resolved.spec;
  TextOptions options = text_options(spec, STDERR_FILENO);
  options.quiet = request.quiet;
  options.verbose = request.verbose;
  options.explain = request.explain;
  options.process_group = guard.process_group;
  records->report = std::make_unique<TextReport>(options);
  records->summary = std::make_unique<Summary>(spec, wall_now());
  records->usage = std::make_unique<UsageWriter>(directory.file("usage.jsonl"));
  if (!spec.metrics.empty()) records->metrics = std::make_unique<MetricsFile>(spec.metrics, spec.name);
  records->streams_results = spec.results == "-";
  ResultsOptions results{directory.file("results.jsonl"), spec.order, spec.results, spec.durability, {}, {}};
  results.tasks = tasks;
  results.written_files = [records] { return records->tensors->take_written(); };
  results.before_writing = [records] {
    if (records->joblog) records->joblog->flush();
  };
  records->when = on_disk(spec.durability);
  if (records->when == OnDisk::kNow) {
    results.certain = [records](std::uint64_t bytes) { return records->journal->record_durable(bytes); };
  }
  auto opened = earlier.any ? open_earlier_records(spec, directory, plan, earlier, results, records)
                            : open_new_records(spec, directory, plan, results, records);
  if (!opened || records->when == OnDisk::kLater) return opened;
  // What a later mprun needs to continue must be on disk before the first results are.
  records->journal->sync();
  if (records->journal->failure()) return *records->journal->failure();
  return directory.sync();
}

namespace {

Result<void> write_junit(const std::string& run_dir, const std::string& path) {
  const auto run = read_run(run_dir);
  return run ? write_for_option("--junit", path, run_junit(*run)) : run.error();
}

std::string shown_path(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, current_directory(), error);
  return error || relative.string().rfind("../", 0) == 0 ? path : relative.string();
}

}  // namespace

int close_records(const JobRecords& records, const JobOutcome& outcome, const RunDirectory& directory,
                  const JobRequest& request) {
  int code = outcome.exit_code;
  if (records.blocks) {
    records.blocks->leave();
    records.warn(records.blocks->take_warnings(), LogComponent::kCluster);
  }
  records.warn(records.tensors->finish());
  records.summary->set_tensors(records.tensors->to_json());
  if (auto saved = records.shared->save(directory.path(), records.when); !saved) {
    records.fail(saved.error().message);
    code = kExitInternal;
  }
  records.summary->set_shared(records.shared->to_json());
  obey_signals();  // while we wait for a reader of --results -
  records.results->finish(!is_by_signal(code));
  records.warn(records.results->take_warnings());
  if (records.usage->failure()) records.warn({records.usage->failure()->message});
  if (records.metrics && records.metrics->failure()) records.warn({records.metrics->failure()->message});
  if (records.log->failure()) records.warn({records.log->failure()->message});
  const bool joblog_whole = records.when == OnDisk::kNow ? records.joblog->sync() : records.joblog->flush();
  if (!joblog_whole) records.fail(records.joblog->failure()->message);
  if (records.results->failure() && code != kExitInternal) {
    records.fail(records.results->failure()->message);
    code = kExitInternal;
  }
  if (code == kExitLaunch) records.fail("cannot launch the job: " + outcome.launch_error);
  const OnDisk when = records.results->failure() ? OnDisk::kLater : records.when;
  records.journal->end(code, outcome.seconds, when);
  const auto written = records.summary->write(directory.file("summary.json"), code, outcome.seconds, when);
  if (!written) {
    records.fail(written.error().message);
    if (code == 0) code = kExitInternal;
  }
  if (!request.junit.empty()) {
    if (auto junit = write_junit(directory.path(), request.junit); !junit) {
      records.fail(junit.error().message);
      if (code == 0) code = kExitInternal;
    }
  }
  const TaskCounts& counts = records.summary->counts();
  records.report->finish({counts.ok, counts.failed, counts.cancelled, counts.retried, counts.earlier, counts.not_run(),
                          outcome.seconds, code,
                          records.streams_results ? "" : shown_path(directory.file("results.jsonl"))});
  records.log->write(LogComponent::kRecord, LogLevel::kInfo,
                     "ends with exit code " + std::to_string(code) + ": " + std::to_string(counts.ok) + " ok, " +
                         std::to_string(counts.failed) + " failed, " + std::to_string(counts.cancelled) +
                         " cancelled, " + std::to_string(counts.retried) + " retried");
  records.when == OnDisk::kNow ? records.log->sync() : records.log->flush();
  const std::string shown = request.summary_json ? indented(records.summary->to_json(code, outcome.seconds)) : "";
  const bool printed = std::fputs(shown.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  const int failure = printed || !request.summary_json ? 0 : errno;
  if (failure != 0 && failure != EPIPE) {
    records.fail("the summary could not be written to standard output: " + std::string(std::strerror(failure)) +
                 "; it is in " + shown_path(directory.file("summary.json")));
    if (code == 0) code = kExitInternal;
  }
  return code;
}

int close_finished(const JobRecords& records, const Earlier& earlier, const RunDirectory& directory,
                   const JobRequest& request) {
  JobOutcome outcome;
  outcome.counts = earlier.results.counts;
  outcome.exit_code = outcome.counts.failed > 0 ? kExitFailed : kExitOk;
  const Counts& counts = outcome.counts;
  Pulse pulse;
  pulse.done = counts.done();
  pulse.ok = counts.ok;
  pulse.failed = counts.failed;
  pulse.cancelled = counts.cancelled;
  pulse.total = counts.done();
  pulse.phase = "finished";
  records.summary->on_event(pulse);
  if (records.metrics) records.metrics->on_event(pulse);
  return close_records(records, outcome, directory, request);
}

}  // namespace mprun
