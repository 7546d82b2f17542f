// EarlierRun: what earlier sessions left in a run directory, for the session that continues it. Read by cli/ before
// anything is launched; owns a few words for each task. What a killed mprun or a power cut left half written is
// skipped: only whole lines of results.jsonl count.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "events/job_event.h"
#include "json/json_fwd.h"
#include "record/provenance.h"
#include "record/result_line.h"
#include "record/row_set.h"

namespace mprun {

/// Which of the existing results count.
struct KeepRule {
  /// Results that name tensors count only within this many bytes from the start of the file: beyond them, a machine
  /// that went down may have kept the line and not the tensor.
  std::uint64_t certain = UINT64_MAX;
  bool failed = true;                        ///< tasks that failed count as ended; else they are tried again
  std::uint64_t tasks = UINT64_MAX;          ///< of the job, if known; results of other tasks do not count
  std::optional<std::uint64_t> all_or_none;  ///< ranks: unless so many succeeded, none count
  /// Whether the tensors that a result names exist. `tensors`: its field of that name.
  std::function<bool(std::uint64_t task, const Json& tensors)> tensors_hold;
  ShardTasks mine = {};  ///< the tasks of the run; results of other tasks do not count
};

/// results.jsonl as it was found.
struct EarlierResults {
  std::uint64_t bytes = 0;  ///< of whole lines from its start; what follows them is not a line
  std::vector<std::pair<std::uint64_t, std::uint64_t>> dropped;  ///< begin, end of lines that do not count
  std::deque<std::pair<std::uint64_t, std::uint64_t>> kept;      ///< task, offset of its line; in the file's order
  RowSet ended;                                                  ///< the tasks in `kept`
  Counts counts;                                                 ///< of them
};

/// The field "tensors" of a result, null if it has none; nullopt: it cannot be read. `line`: the whole line.
[[nodiscard]] std::optional<Json> tensors_of(std::string_view line, const ResultLine& result);

/// Reads the lines one by one. Errors: the file cannot be read.
[[nodiscard]] Result<EarlierResults> read_results(const std::string& path, const KeepRule& rule);

/// journal.jsonl as it was found.
struct EarlierSessions {
  Provenance origin;
  std::uint64_t bytes = 0;  ///< of whole lines
  int sessions = 0;
  bool ended = false;  ///< the last session closed its records
  std::string boot;    ///< boot_id() of the last session
  /// Bytes of results.jsonl that the last session knew to be on disk, with the tensors that they name.
  std::uint64_t certain = 0;
  int exit_code = 0;          ///< of the last session, if it has ended
  double seconds = 0;         ///< total of the sessions whose end is known
  Nanos started = 0;          ///< of the first session, wall clock
  std::vector<Nanos> starts;  ///< of all sessions whose start is recorded, in order
};

/// KeepRule::certain for a run: the whole file, unless the machine was restarted since.
[[nodiscard]] std::uint64_t certain_bytes(const EarlierSessions& sessions);

/// Reads the journal and passes its events to `replay`. kUsage errors: there is no journal (no run directory, or one of
/// another mprun), or it has another version.
[[nodiscard]] Result<EarlierSessions> read_journal(const std::string& run_dir,
                                                   const std::function<void(const JobEvent&)>& replay);

}  // namespace mprun
