// RunRecord: what a run directory records of a run that has ended, still runs or was killed. Read by `mprun report`
// from job.json, journal.jsonl, results.jsonl and summary.json; owns some 40 bytes for every attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process_end.h"
#include "base/result.h"
#include "events/job_event.h"
#include "json/document.h"
#include "json/json.h"

namespace mprun {

// Its implicit move moves a nlohmann value, which clang-tidy cannot see through.
struct RunRecord {  // NOLINT(bugprone-exception-escape)
  enum class End { kOk, kFailed, kCancelled, kRetried };
  struct Attempt {
    TaskId task = 0;
    double start = 0, seconds = 0;  ///< since 1970; duration
    int worker = 0;
    int attempt = 1;
    End end = End::kOk;
  };
  struct Failure {
    TaskId task = 0;
    int worker = 0;
    int attempt = 1;
    bool retried = false;
    std::string error;  ///< the JSON text of the error object; of a retried attempt one line
  };
  struct Process {
    std::string role;
    int worker = 0;
    std::int32_t pid = 0;
    ProcessEnd end;
    bool expected = true;
    std::string cpus{};  ///< that it was bound to; empty: it was not
  };
  /// A stage of the start of a worker or host.
  struct Phase {
    int worker = 0;                 ///< below 0: a host, each shard's has another number
    double start = 0, seconds = 0;  ///< since 1970; duration
    std::string text;               ///< "importing job.py"
  };
  struct Hang {
    std::string verdict, cause, file;
  };

  std::string directory;  ///< absolute
  Json spec;              ///< job.json
  std::string job;
  std::string mprun;  ///< the version that began it
  int sessions = 0;
  double started = 0;                  ///< of the first session, seconds since 1970
  std::optional<double> seconds;       ///< of all sessions; nullopt: the last has not ended, or was killed
  std::optional<int> exit_code;        ///< nullopt: the same
  std::optional<std::uint64_t> total;  ///< number of tasks, if summary.json has it
  std::vector<Attempt> attempts;       ///< in the order in which they were recorded
  std::vector<Failure> failures;       ///< the first kMostFailures
  std::vector<Phase> phases;           ///< the first kMostPhases whose end is known
  std::vector<Process> processes;
  std::vector<Hang> hangs;
  std::vector<std::pair<std::string, std::string>> notices;  ///< kind, text

  std::vector<double> starts;  ///< of the sessions, ascending; the first is `started`

  static constexpr std::size_t kMostFailures = 10'000;
  static constexpr std::size_t kMostPhases = 20'000;
};

/// kUsage errors: not a run directory, or one of another version.
[[nodiscard]] Result<RunRecord> read_run(const std::string& run_dir);

}  // namespace mprun
