// mprun JOB.json: opens what a run needs, lets the supervisor work, closes the records.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "commands.h"
#include "hang_watch.h"
#include "installation.h"
#include "job/inputs.h"
#include "job_tasks.h"
#include "json/json.h"
#include "machine.h"
#include "meeting_point.h"
#include "obey_signals.h"
#include "os/process.h"
#include "record/atomic_file.h"
#include "record/earlier_run.h"
#include "record/joblog_writer.h"
#include "record/journal.h"
#include "record/results_writer.h"
#include "record/run_directory.h"
#include "record/shared_tensors.h"
#include "record/summary.h"
#include "record/tensor_files.h"
#include "record/usage_writer.h"
#include "report/text_report.h"
#include "supervise/command_pool.h"
#include "supervise/supervisor.h"

namespace mprun {
namespace {

/// Everything that is written during a run.
struct Records {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<ResultsWriter> results;
  std::unique_ptr<JoblogWriter> joblog;
  std::unique_ptr<Summary> summary;
  std::unique_ptr<TextReport> report;
  std::unique_ptr<TensorFiles> tensors;
  std::unique_ptr<UsageWriter> usage;
  std::unique_ptr<ClaimedBlocks> blocks;  ///< of a shard that shares tasks while they run; else nullptr
  SharedTensors* shared = nullptr;        ///< of run_job()
  OnDisk when = OnDisk::kNow;             ///< what resume needs, and what the job has left in the end

  [[nodiscard]] std::vector<Sink*> sinks() const {
    // Tensors come before the results that need them on disk.
    std::vector<Sink*> sinks{journal.get(), tensors.get(), results.get(), joblog.get(),
                             summary.get(), report.get(),  usage.get()};
    if (blocks) sinks.push_back(blocks.get());  // after the results: a block is done when they have all
    return sinks;
  }
  void warn(const std::vector<std::string>& warnings) const {
    for (const std::string& text : warnings) {
      for (Sink* sink : std::initializer_list<Sink*>{journal.get(), summary.get(), report.get()}) {
        sink->on_event(Notice{Notice::Kind::kWarning, text});
      }
    }
  }
};

/// Whether progress is shown.
bool shows_progress(const JobSpec& spec, const CommandLine& line) {
  return spec.progress == ProgressMode::kAlways || (spec.progress == ProgressMode::kAuto && !line.quiet);
}

/// Decides what happens with more workers than tasks, or than the system allows.
Result<void> fit_processes(JobSpec* spec, const InputSource& inputs, std::vector<Decision>* decisions) {
  const auto total = inputs.total();
  if (spec->kind != JobKind::kRanks && total && *total < static_cast<std::uint64_t>(spec->processes)) {
    spec->processes = std::max(1, static_cast<int>(*total));
    decisions->push_back({"processes", std::to_string(spec->processes), "there are no more tasks than that"});
  }
  const rlimit limit = limits_of(RLIMIT_NOFILE);
  const auto workers = static_cast<std::uint64_t>(spec->processes);
  const std::uint64_t most = most_workers(limit.rlim_cur);
  if (workers > most) {
    return usage_error("/processes: " + std::to_string(workers) + " workers need " +
                       std::to_string(open_files_for(workers)) + " open files, the limit is " +
                       std::to_string(limit.rlim_cur) + "\n  " +
                       (most > 0 ? "use --processes " + std::to_string(most) + " or fewer, or " : "") +
                       "raise the limit (ulimit -Hn)");
  }
  return {};
}

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

/// What earlier sessions left; empty in a new run.
struct Earlier {
  EarlierResults results;
  bool any = false;
  bool certain = false;  ///< the results are on disk, with their tensors
};

/// `tensors`, those of the run, take over what is done.
Result<Earlier> read_earlier(const CommandLine& line, const Plan& plan, const Tasks& tasks,
                             const RunDirectory& directory, TensorFiles* tensors) {
  const JobSpec& spec = plan.resolved.spec;
  KeepRule rule;
  rule.certain = plan.certain;
  rule.tasks = tasks.all.value_or(rule.tasks);
  rule.mine = tasks.mine;
  rule.failed = !line.retry_failed;
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

Result<void> open_earlier_records(const JobSpec& spec, const RunDirectory& directory, const Plan& plan,
                                  const Earlier& earlier, const ResultsOptions& options, Records* records) {
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
                              const ResultsOptions& options, Records* records) {
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

/// `*records` has the tensors already, and does not move.
Result<void> open_records(const JobSpec& spec, const RunDirectory& directory, const CommandLine& line, const Plan& plan,
                          const Earlier& earlier, const ShardTasks& tasks, const Guard& guard, Records* records) {
  TextOptions options = text_options(spec, STDERR_FILENO);
  options.quiet = line.quiet;
  options.verbose = line.verbose;
  options.explain = line.explain;
  options.process_group = guard.process_group;
  records->report = std::make_unique<TextReport>(options);
  records->summary = std::make_unique<Summary>(spec, wall_now());
  records->usage = std::make_unique<UsageWriter>(directory.file("usage.jsonl"));
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

/// A human-readable name of the place where this shard runs.
std::string place_name(const Allocation& allocation) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (!allocation.node.empty() || gethostname(host.data(), host.size() - 1) != 0) return allocation.node;
  return host.data();
}

std::string current_path() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

std::string shown_path(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, current_path(), error);
  return error || relative.string().rfind("../", 0) == 0 ? path : relative.string();
}

/// Reports before the job, not after it, that the file cannot be written.
Result<void> check_junit(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const std::string folder = std::filesystem::absolute(path, error).parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return usage_error("--junit: " + path + " cannot be written: " + folder + ": " + std::strerror(errno));
}

int close_records(const Records& records, const JobOutcome& outcome, const RunDirectory& directory,
                  const CommandLine& line) {
  int code = outcome.exit_code;
  if (records.blocks) {
    records.blocks->leave();
    records.warn(records.blocks->take_warnings());
  }
  records.warn(records.tensors->finish());
  records.summary->set_tensors(records.tensors->to_json());
  if (auto saved = records.shared->save(directory.path(), records.when); !saved) {
    records.report->print("mprun: " + saved.error().message + "\n");
    code = kExitInternal;
  }
  records.summary->set_shared(records.shared->to_json());
  obey_signals();  // while we wait for a reader of --results -
  records.results->finish(!is_by_signal(code));
  records.warn(records.results->take_warnings());
  if (records.usage->failure()) records.warn({records.usage->failure()->message});
  const bool joblog_whole = records.when == OnDisk::kNow ? records.joblog->sync() : records.joblog->flush();
  if (!joblog_whole) records.report->print("mprun: " + records.joblog->failure()->message + "\n");
  if (records.results->failure() && code != kExitInternal) {
    records.report->print("mprun: " + records.results->failure()->message + "\n");
    code = kExitInternal;
  }
  if (code == kExitLaunch) records.report->print("mprun: cannot launch the job: " + outcome.launch_error + "\n");
  const OnDisk when = records.results->failure() ? OnDisk::kLater : records.when;
  records.journal->end(code, outcome.seconds, when);
  const auto written = records.summary->write(directory.file("summary.json"), code, outcome.seconds, when);
  if (!written) {
    records.report->print("mprun: " + written.error().message + "\n");
    if (code == 0) code = kExitInternal;
  }
  if (!line.junit.empty()) {
    if (auto junit = write_junit(directory.path(), line.junit); !junit) {
      records.report->print("mprun: " + junit.error().message + "\n");
      if (code == 0) code = kExitInternal;
    }
  }
  const TaskCounts& counts = records.summary->counts();
  records.report->finish({counts.ok, counts.failed, counts.cancelled, counts.retried, counts.not_run(), outcome.seconds,
                          code, shown_path(directory.file("results.jsonl"))});
  if (line.summary_json) std::fputs(indented(records.summary->to_json(code, outcome.seconds)).c_str(), stdout);
  std::fflush(stdout);
  return code;
}

/// Nothing is left to run: at most the records must be finished.
int close_finished(const Records& records, const Earlier& earlier, const RunDirectory& directory,
                   const CommandLine& line) {
  JobOutcome outcome;
  outcome.counts = earlier.results.counts;
  outcome.exit_code = outcome.counts.failed > 0 ? kExitFailed : kExitOk;
  Pulse pulse;
  pulse.total = outcome.counts.done();
  records.summary->on_event(pulse);
  return close_records(records, outcome, directory, line);
}

}  // namespace

int run_job(const CommandLine& line, Plan plan, const Guard& guard) {
  JobSpec& spec = plan.resolved.spec;
  const auto installation = find_installation();
  if (!installation) return report_error(installation.error());
  if (auto writable = check_junit(line.junit); !writable) return report_error(writable.error());
  const std::optional<rlimit> open_files = raise_open_files();
  if (spec.kind == JobKind::kRanks && spec.shard.value_or(Shard{}).count > 1) {
    if (auto met = agree_on_meeting_point(&spec.allocation); !met) return report_error(met.error());
  }
  auto tasks = open_tasks(spec);
  if (!tasks) return report_error(tasks.error());
  Records records;
  Earlier earlier;
  std::optional<RunDirectory> directory;
  if (plan.goes_on) {
    auto found = RunDirectory::reopen(spec.output_dir);
    if (!found) return report_error(found.error());
    directory = std::move(*found);
    guard.keep_open(directory->lock_fd());
    records.tensors = std::make_unique<TensorFiles>(directory->path(), tasks->all, tasks->rows);
    auto read = read_earlier(line, plan, *tasks, *directory, records.tensors.get());
    if (!read) return report_error(read.error());
    earlier = std::move(*read);
  }
  const bool shares = spec.shard && spec.balance == Balance::kDynamic;
  int stopped_by = 0;
  auto first =
      shares ? FirstInput() : pull_first(*tasks, earlier.results.ended, guard, shows_progress(spec, line), &stopped_by);
  if (stopped_by != 0) return exit_code_of_signal(stopped_by);
  if (!first) return report_error(first.error());
  if (auto fits = fit_processes(&spec, *tasks->inputs, &plan.resolved.decisions); !fits)
    return report_error(fits.error());
  auto shared = SharedTensors::create(spec.shared, spec.output_dir.empty() ? current_path() : spec.output_dir);
  if (!shared) return report_error(shared.error());
  if (!directory) {
    auto created = RunDirectory::create(spec, plan.resolved.merged);
    if (!created) return report_error(created.error());
    directory = std::move(*created);
    guard.keep_open(directory->lock_fd());
    records.tensors = std::make_unique<TensorFiles>(directory->path(), tasks->all, tasks->rows);
  }
  if (auto opened = open_records(spec, *directory, line, plan, earlier, tasks->mine, guard, &records); !opened) {
    return report_error(opened.error());
  }
  records.shared = &*shared;
  if (spec.shard) records.journal->record_place(place_name(spec.allocation), spec.allocation.job_id);
  for (const Decision& decision : plan.resolved.decisions) {
    const std::string text = decision.field + " = " + decision.value + " (" + decision.reason + ")";
    records.report->on_event(Notice{Notice::Kind::kExplain, text});
  }
  if (spec.shard && !line.quiet) {
    const std::string source = spec.allocation.shard_source;
    records.report->print("mprun: " + describe_shard(spec, *tasks) + (source.empty() ? "" : ", from " + source) + "\n");
  }
  if (directory->warning()) records.report->on_event(Notice{Notice::Kind::kWarning, *directory->warning()});

  auto blocks = share_tasks(spec, *tasks, earlier.results, earlier.any, records.results.get());
  if (!blocks) return report_error(blocks.error());
  records.blocks = std::move(*blocks);
  const bool left =
      shares ? records.blocks->next(monotonic_now()) || !records.blocks->all_done() : !first->text.empty();
  if (!left) return close_finished(records, earlier, *directory, line);

  Supervisor::Setup setup;
  setup.spec = &spec;
  setup.inputs = tasks->inputs.get();
  setup.all_tasks = tasks->all;
  setup.in_batch_job = spec.allocation.slurm;
  setup.first_input = std::move(first->text);
  setup.first_task = first->task;
  setup.shared_tasks = records.blocks.get();
  setup.earlier = earlier.results.counts;
  if (earlier.any || spec.shard) {
    setup.ended_earlier = [&](TaskId task) { return !tasks->mine.has(task) || earlier.results.ended.has(task); };
  }
  setup.environment = own_environment();
  setup.environment.erase(kSharedVariable);  // of a job around this one
  if (!spec.shared.empty()) setup.environment[kSharedVariable] = shared->variable();
  setup.run_dir = directory->path();
  setup.bootstrap = installation->bootstrap;
  setup.adapters = installation->adapters;
  setup.open_files = open_files;
  setup.guard = guard;
  setup.sinks = records.sinks();
  setup.failure = [&records] {
    records.warn(records.results->take_warnings());
    if (records.blocks) records.warn(records.blocks->take_warnings());
    return records.blocks && records.blocks->failure() ? records.blocks->failure() : records.results->failure();
  };
  setup.check_tensors = [&records](TaskId task, std::string_view input, std::string_view claims) {
    return records.tensors->check(task, input, claims);
  };
  setup.tensor_bytes = [&records, before = records.tensors->bytes()] { return records.tensors->bytes() - before; };
  auto watch = HangWatch::create(spec.watch, guard, directory->path());
  if (!watch) return report_error(watch.error());
  setup.watch = watch->get();
  if (line.log_events) setup.event_log = directory->path() + "/events.log";
  setup.on_user_signal = [&records, &watch] { records.report->print((*watch)->inspect()); };
  const auto outcome = Supervisor(std::move(setup)).run();
  if (!outcome) return report_error(outcome.error());
  return close_records(records, *outcome, *directory, line);
}

}  // namespace mprun
