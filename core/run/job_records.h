// JobRecords: what a job writes while it runs, opened before anything is launched and closed after nothing runs any
// more. A run that is continued opens what its earlier sessions left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "record/claimed_blocks.h"
#include "record/earlier_run.h"
#include "record/joblog_writer.h"
#include "record/journal.h"
#include "record/results_writer.h"
#include "record/run_directory.h"
#include "record/shared_tensors.h"
#include "record/summary.h"
#include "record/tensor_files.h"
#include "record/usage_writer.h"
#include "report/job_log.h"
#include "report/log_file.h"
#include "report/metrics_file.h"
#include "report/text_report.h"
#include "run/job_tasks.h"
#include "run/plan.h"
#include "supervise/supervisor.h"

namespace mprun {

/// Everything that is written during a run.
struct JobRecords {
  std::unique_ptr<LogFile> log;
  std::unique_ptr<JobLog> job_log;  ///< the events, for `log`
  std::unique_ptr<Journal> journal;
  std::unique_ptr<ResultsWriter> results;
  std::unique_ptr<JoblogWriter> joblog;
  std::unique_ptr<Summary> summary;
  std::unique_ptr<TextReport> report;
  std::unique_ptr<TensorFiles> tensors;
  std::unique_ptr<UsageWriter> usage;
  std::unique_ptr<MetricsFile> metrics;   ///< of a job that asks for it; else nullptr
  std::unique_ptr<ClaimedBlocks> blocks;  ///< of a shard that shares tasks while they run; else nullptr
  SharedTensors* shared = nullptr;        ///< of the job
  bool streams_results = false;           ///< standard output has them: the reader need not keep the run directory
  OnDisk when = OnDisk::kNow;             ///< what resume needs, and what the job has left in the end

  [[nodiscard]] std::vector<Sink*> sinks() const;
  void warn(const std::vector<std::string>& warnings, LogComponent from = LogComponent::kRecord) const;
  /// What is said once, before or after the supervisor's events: for the user and the log only.
  void say(const Notice& notice) const;
  /// An error that is printed while the records are closed.
  void fail(const std::string& message) const;
};

/// What earlier sessions left; empty in a new run.
struct Earlier {
  EarlierResults results;
  bool any = false;
  bool certain = false;  ///< the results are on disk, with their tensors
};

/// `tensors`, those of the run, take over what is done.
[[nodiscard]] Result<Earlier> read_earlier(const JobRequest& request, const Plan& plan, const Tasks& tasks,
                                           const RunDirectory& directory, TensorFiles* tensors);

/// `*records` has the tensors already, and does not move.
[[nodiscard]] Result<void> open_records(const JobRequest& request, const Plan& plan, const RunDirectory& directory,
                                        const Earlier& earlier, const ShardTasks& tasks, const Guard& guard,
                                        JobRecords* records);

/// Writes the last of everything, prints the outcome, and returns mprun's exit code.
[[nodiscard]] int close_records(const JobRecords& records, const JobOutcome& outcome, const RunDirectory& directory,
                                const JobRequest& request);

/// The same for a job without anything left to run.
[[nodiscard]] int close_finished(const JobRecords& records, const Earlier& earlier, const RunDirectory& directory,
                                 const JobRequest& request);

}  // namespace mprun
