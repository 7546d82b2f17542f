// The tasks that one mprun has to run, all of a job's or its shard's, and the first of them. Used by run_job before
// anything is launched.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/rendezvous.h"
#include "cluster/shard.h"
#include "events/job_event.h"
#include "job/inputs.h"
#include "launch/guard.h"
#include "record/claimed_blocks.h"
#include "record/results_writer.h"
#include "record/row_set.h"

namespace mprun {

/// The tasks of this mprun: all of them, or its shard's.
struct Tasks {
  std::unique_ptr<InputSource> inputs;     ///< from the input of `first` on
  std::optional<std::uint64_t> all, rows;  ///< of the whole job: InputSource::total(), rows()
  ShardTasks mine;                         ///< of a shard that claims them: those it could get
  TaskId first = 0;                        ///< the task of the first input, in `mine` or not
};

/// Errors: those of open_inputs(); tasks to be balanced whose number is unknown.
[[nodiscard]] Result<Tasks> open_tasks(const JobSpec& spec);

/// Whether shards can share so many tasks while they run: kUsage if it is unknown how many there are.
[[nodiscard]] Result<void> check_balance(const JobSpec& spec, std::optional<std::uint64_t> tasks);

/// The blocks that the shard shares with others; nullptr: none, it has its own tasks. All arguments must outlive it.
[[nodiscard]] Result<std::unique_ptr<ClaimedBlocks>> share_tasks(const JobSpec& spec, const Tasks& tasks,
                                                                 const EarlierResults& earlier, bool goes_on,
                                                                 ResultsWriter* results, Log* log);

/// Where the ranks of the shard start, start again and end together with those of others; nullptr: they do not.
[[nodiscard]] std::unique_ptr<Rendezvous> open_rendezvous(const JobSpec& spec);

/// "shard 2 of 4: tasks 450 to 899", or how it gets them.
[[nodiscard]] std::string describe_shard(const JobSpec& spec, const Tasks& tasks);

/// An input, and its task.
struct FirstInput {
  TaskId task = 0;
  std::string text;  ///< empty: there is none, all tasks have ended
};

/// The first input whose task has not ended, so that a job without any launches nothing. A signal during the wait is
/// stored in `*stopped_by`; a long wait is reported on standard error if `reports_wait`.
[[nodiscard]] Result<FirstInput> pull_first(const Tasks& tasks, const RowSet& ended, const Guard& guard,
                                            bool reports_wait, int* stopped_by);

}  // namespace mprun
