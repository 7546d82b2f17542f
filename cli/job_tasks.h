// The tasks that one mprun has to run, all of a job's or its shard's, and the first of them. Used by run_job before
// anything is launched.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/shard.h"
#include "job/inputs.h"
#include "launch/guard.h"
#include "record/claimed_blocks.h"
#include "record/results_writer.h"
#include "record/row_set.h"
#include "supervise/job_event.h"

namespace mprun {

/// What this mprun has to do: everything, or its shard.
struct Tasks {
  std::unique_ptr<InputSource> inputs;     ///< from those of `first` on
  std::optional<std::uint64_t> all, rows;  ///< of the whole job: InputSource::total(), rows()
  ShardTasks mine;                         ///< of a shard that claims them: those it could get
  TaskId first = 0;                        ///< whose input comes first, in `mine` or not
};

/// Errors: those of open_inputs(); tasks of unknown number that are to be balanced.
[[nodiscard]] Result<Tasks> open_tasks(const JobSpec& spec);

/// Whether shards can share so many tasks while they run: kUsage if cause of death unknown many there are.
[[nodiscard]] Result<void> check_balance(const JobSpec& spec, std::optional<std::uint64_t> tasks);

/// The blocks that the shard shares with others; nullptr: none, it has tasks of its own. All that is given outlives it.
[[nodiscard]] Result<std::unique_ptr<ClaimedBlocks>> share_tasks(const JobSpec& spec, const Tasks& tasks,
                                                                 const EarlierResults& earlier, bool goes_on,
                                                                 ResultsWriter* results);

/// "shard 2 of 4: tasks 450 to 899", or how it gets them.
[[nodiscard]] std::string describe_shard(const JobSpec& spec, const Tasks& tasks);

/// An input, and whose it is.
struct FirstInput {
  TaskId task = 0;
  std::string text;  ///< empty: there is none, all tasks have ended
};

/// The first input whose task has not ended, so that a job without any launches nothing. A signal while waiting ends up
/// in `*stopped_by`; a long wait is told on standard error if it `tells`.
[[nodiscard]] Result<FirstInput> pull_first(const Tasks& tasks, const RowSet& ended, const Guard& guard, bool tells,
                                            int* stopped_by);

}  // namespace mprun
