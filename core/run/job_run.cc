#include "run/job_run.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/exit_codes.h"
#include "os/fd.h"
#include "os/process.h"
#include "record/journal.h"
#include "run/hang_watch.h"
#include "run/installation.h"
#include "run/job_records.h"
#include "run/meeting_point.h"
#include "run/open_files.h"
#include "run/resolve_request.h"
#include "run/version.h"

namespace mprun {
namespace {

/// Whether progress is shown.
bool shows_progress(const JobSpec& spec, const JobRequest& request) {
  return spec.progress == ProgressMode::kAlways || (spec.progress == ProgressMode::kAuto && !request.quiet);
}

/// Decides what happens with more workers than tasks, or than the system allows.
Result<void> fit_processes(Resolved* resolved, const InputSource& inputs) {
  JobSpec* const spec = &resolved->spec;
  const auto total = inputs.total();
  if (spec->kind != JobKind::kRanks && total && *total < static_cast<std::uint64_t>(spec->processes)) {
    spec->processes = std::max(1, static_cast<int>(*total));
    const std::string few = "there are no more tasks than that";
    resolved->decisions.push_back({"processes", std::to_string(spec->processes), few});
    resolved->placing.query.workers = spec->processes;
    if (auto placed = place(resolved->placing, spec); !placed) return placed;
    resolved->decisions.push_back({"threads_per_worker", std::to_string(spec->threads_per_worker), few});
    if (!spec->worker_cpus.empty()) resolved->decisions.push_back({"binding", describe_binding(*spec), few});
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

/// A human-readable name of the place where this shard runs.
std::string place_name(const Allocation& allocation) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (!allocation.node.empty() || gethostname(host.data(), host.size() - 1) != 0) return allocation.node;
  return host.data();
}

/// Reports before the job, not after it, that the file cannot be written.
Result<void> check_junit(const std::string& path) {
  if (path.empty()) return {};
  if (const std::string why = why_not_replaced(path); !why.empty()) return usage_error("--junit: " + path + " " + why);
  std::error_code error;
  const std::string folder = std::filesystem::absolute(path, error).parent_path().string();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return usage_error("--junit: " + path + " cannot be written: " + folder + ": " + std::strerror(errno));
}

/// Refuses a copy of the results that would empty a file which the run reads or keeps.
Result<void> check_copy(const JobSpec& spec, const Provenance& origin) {
  namespace fs = std::filesystem;
  if (spec.results.empty() || spec.results == "-") return {};
  std::error_code error;
  const auto is = [&](const fs::path& path) { return fs::equivalent(spec.results, path, error); };
  const auto refuse = [&](const std::string& what) {
    return usage_error("--results " + spec.results + " is " + what + "; leave --results out or name another file");
  };
  const fs::path copy(spec.results);
  const bool in_run = !spec.output_dir.empty() && fs::equivalent(copy.parent_path(), spec.output_dir, error);
  for (const std::string name :
       {"results.jsonl", kJournalName, "job.json", "joblog.tsv", "summary.json", "usage.jsonl", "mprun.log"}) {
    const bool own = in_run && copy.filename() == name;
    if (own || is(fs::path(spec.output_dir) / name))
      return refuse("the run's own " + name + ", which is written anyway");
  }
  if (is(origin.spec_path)) return refuse("the job's spec, which would be lost");
  for (const Fingerprint& file : origin.files) {
    if (is(file.path)) return refuse(file.what + ", which would be lost");
  }
  return {};
}

/// MPRUN_LOG, and over it --log-level.
Result<LogLevels> wanted_log_levels(const JobRequest& request) {
  LogLevels levels;
  const char* const variable = std::getenv("MPRUN_LOG");
  if (variable != nullptr && *variable != '\0') {
    if (const auto set = levels.set(variable); !set) return usage_error("MPRUN_LOG: " + set.error().message);
  }
  if (!request.log_level.empty()) {
    if (const auto set = levels.set(request.log_level); !set) return set.error();
  }
  return levels;
}

/// Who runs what, and where: the first line of a session in the log.
std::string begin_text(const JobSpec& spec, const std::string& run_dir) {
  utsname system{};
  uname(&system);
  return "mprun " + version_and_commit() + ", pid " + std::to_string(getpid()) + " on " + system.nodename + " (" +
         system.sysname + " " + system.release + " " + system.machine + "), begins " + spec.name + " with " +
         std::to_string(spec.processes) + " processes in " + run_dir;
}

class JobRun {
 public:
  JobRun(const JobRequest& request, Plan plan, const Guard& guard)
      : request_(request), plan_(std::move(plan)), spec_(plan_.resolved.spec), guard_(guard) {}

  Result<int> run() {
    auto code = run_to_end();
    if (!code && records_.log) records_.log->write(LogComponent::kRecord, LogLevel::kError, code.error().message);
    return code;
  }

 private:
  Result<int> run_to_end() {
    if (auto ready = prepare(); !ready) return ready.error();
    if (auto reopened = reopen_run(); !reopened) return reopened.error();
    int stopped_by = 0;
    auto pulled = pull_first_input(&stopped_by);
    if (stopped_by != 0) return exit_code_of_signal(stopped_by);
    if (!pulled) return pulled.error();
    if (auto opened = open_run(); !opened) return opened.error();
    announce();
    const auto left = has_work();
    if (!left) return left.error();
    if (!*left) return close_finished(records_, earlier_, *directory_, request_);
    const auto outcome = supervise();
    if (!outcome) return outcome.error();
    return close_records(records_, *outcome, *directory_, request_);
  }

  Result<void> prepare() {
    auto levels = wanted_log_levels(request_);
    if (!levels) return levels.error();
    log_levels_ = *levels;
    auto installation = find_installation();
    if (!installation) return installation.error();
    installation_ = std::move(*installation);
    if (auto writable = check_junit(request_.junit); !writable) return writable;
    if (auto harmless = check_copy(spec_, plan_.origin); !harmless) return harmless;
    open_files_ = raise_open_files();
    if (spec_.kind == JobKind::kRanks && spec_.shard.value_or(Shard{}).count > 1) {
      if (auto met = agree_on_meeting_point(&spec_.allocation); !met) return met;
    }
    auto tasks = open_tasks(spec_);
    if (!tasks) return tasks.error();
    tasks_ = std::move(*tasks);
    return {};
  }

  void enter(RunDirectory directory) {
    directory_ = std::move(directory);
    guard_.keep_open(directory_->lock_fd());
    records_.tensors = std::make_unique<TensorFiles>(directory_->path(), tasks_.all, tasks_.rows);
  }

  // Where the run goes on: what its earlier sessions left.
  Result<void> reopen_run() {
    if (!plan_.goes_on) return {};
    auto found = RunDirectory::reopen(spec_.output_dir);
    if (!found) return found.error();
    enter(std::move(*found));
    auto read = read_earlier(request_, plan_, tasks_, *directory_, records_.tensors.get());
    if (!read) return read.error();
    earlier_ = std::move(*read);
    return {};
  }

  // A job without inputs launches nothing. Shards that share tasks have none before they claim some.
  Result<void> pull_first_input(int* stopped_by) {
    shares_tasks_ = spec_.shard && spec_.balance == Balance::kDynamic;
    if (shares_tasks_) return {};
    auto first = pull_first(tasks_, earlier_.results.ended, guard_, shows_progress(spec_, request_), stopped_by);
    if (!first) return first.error();
    first_ = std::move(*first);
    return {};
  }

  Result<void> open_run() {
    if (auto fits = fit_processes(&plan_.resolved, *tasks_.inputs); !fits) return fits;
    auto shared = SharedTensors::create(spec_.shared, {spec_.interleave_nodes, spec_.hugetlb},
                                        spec_.output_dir.empty() ? current_directory() : spec_.output_dir);
    if (!shared) return shared.error();
    shared_.emplace(std::move(*shared));
    records_.shared = &*shared_;
    if (!directory_) {
      auto created = RunDirectory::create(spec_, plan_.resolved.merged);
      if (!created) return created.error();
      enter(std::move(*created));
    }
    auto opened = open_records(request_, plan_, *directory_, earlier_, tasks_.mine, guard_, &records_);
    if (!opened) return opened;
    records_.log = std::make_unique<LogFile>(directory_->file("mprun.log"), request_.log_format, log_levels_);
    records_.job_log = std::make_unique<JobLog>(records_.log.get());
    return {};
  }

  void announce() {
    records_.log->write(LogComponent::kRecord, LogLevel::kInfo, begin_text(spec_, directory_->path()));
    if (spec_.shard) records_.journal->record_place(place_name(spec_.allocation), spec_.allocation.job_id);
    for (const Decision& decision : plan_.resolved.decisions) {
      const std::string text = decision.field + " = " + decision.value + " (" + decision.reason + ")";
      records_.say(Notice{Notice::Kind::kExplain, text, LogComponent::kRecord});
    }
    if (spec_.shard) {
      const std::string source = spec_.allocation.shard_source;
      const std::string text = describe_shard(spec_, tasks_) + (source.empty() ? "" : ", from " + source);
      records_.say(Notice{Notice::Kind::kInfo, text, LogComponent::kCluster});
    }
    if (directory_->warning()) {
      records_.say(Notice{Notice::Kind::kWarning, *directory_->warning(), LogComponent::kRecord});
    }
  }

  Result<bool> has_work() {
    auto blocks =
        share_tasks(spec_, tasks_, earlier_.results, earlier_.any, records_.results.get(), records_.log.get());
    if (!blocks) return blocks.error();
    records_.blocks = std::move(*blocks);
    if (!shares_tasks_) return !first_.text.empty();
    return records_.blocks->next(monotonic_now()) || !records_.blocks->all_done();
  }

  [[nodiscard]] Environment environment() const {
    Environment environment = own_environment();
    environment.erase(kSharedVariable);  // of a job around this one
    if (!spec_.shared.empty()) environment[kSharedVariable] = shared_->variable();
    return environment;
  }

  std::optional<Error> failure_of_records() {
    records_.warn(records_.results->take_warnings());
    if (records_.blocks) records_.warn(records_.blocks->take_warnings(), LogComponent::kCluster);
    return records_.blocks && records_.blocks->failure() ? records_.blocks->failure() : records_.results->failure();
  }

  Result<JobOutcome> supervise() {
    auto watch = HangWatch::create(spec_.watch, guard_, directory_->path());
    if (!watch) return watch.error();
    (*watch)->log_to(records_.log.get());
    Supervisor::Setup setup;
    setup.spec = &spec_;
    setup.inputs = tasks_.inputs.get();
    setup.all_tasks = tasks_.all;
    setup.in_batch_job = spec_.allocation.slurm;
    setup.first_input = std::move(first_.text);
    setup.first_task = first_.task;
    setup.shared_tasks = records_.blocks.get();
    const auto rendezvous = open_rendezvous(spec_);
    setup.rendezvous = rendezvous.get();
    setup.earlier = earlier_.results.counts;
    if (earlier_.any || spec_.shard) {
      setup.ended_earlier = [this](TaskId task) { return !tasks_.mine.has(task) || earlier_.results.ended.has(task); };
    }
    setup.environment = environment();
    setup.run_dir = directory_->path();
    setup.bootstrap = installation_.bootstrap;
    setup.adapters = installation_.adapters;
    setup.open_files = open_files_;
    setup.guard = guard_;
    setup.sinks = records_.sinks();
    setup.failure = [this] { return failure_of_records(); };
    setup.check_tensors = [this](TaskId task, std::string_view input, const TaskReport& report) {
      return records_.tensors->check(task, input, report.tensors, report.read);
    };
    setup.tensor_bytes = [this, before = records_.tensors->bytes()] { return records_.tensors->bytes() - before; };
    setup.watch = watch->get();
    setup.log = records_.log.get();
    if (request_.log_events) setup.event_log = directory_->path() + "/events.log";
    setup.on_user_signal = [this, &watch] { records_.report->print((*watch)->inspect()); };
    return Supervisor(std::move(setup)).run();
  }

  const JobRequest& request_;
  Plan plan_;
  JobSpec& spec_;  ///< of the plan
  const Guard& guard_;
  LogLevels log_levels_;
  Installation installation_;
  std::optional<rlimit> open_files_;
  Tasks tasks_;
  bool shares_tasks_ = false;
  FirstInput first_;
  JobRecords records_;
  Earlier earlier_;
  std::optional<RunDirectory> directory_;
  std::optional<SharedTensors> shared_;
};

}  // namespace

Result<int> run_job(const JobRequest& request, Plan plan, const Guard& guard) {
  return JobRun(request, std::move(plan), guard).run();
}

}  // namespace mprun
