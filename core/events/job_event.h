// JobEvent: what happens in a job, passed once to every Sink (records, terminal, explain).
// The supervisor sends, sinks receive; they share these values and no state. Views are valid
// only during the call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "base/process_end.h"

namespace mprun {

using TaskId = std::uint64_t;  ///< from 0, in input order

enum class TaskStatus {
  kOk,
  kFailed,
  kCancelled,  ///< stopped before it could finish: Ctrl-C, on_error stop, another rank failed
};

/// One task ended for good: sent exactly once per task, in the order of completion.
struct TaskEnded {
  TaskId task = 0;
  TaskStatus status = TaskStatus::kOk;
  std::string_view input;   ///< JSON text
  std::string_view result;  ///< kOk: the value's JSON text; else JSON object {type, message, traceback, ...}
  int worker = 0;           ///< slot, or rank
  int attempt = 1;          ///< from 1
  Nanos start = 0;          ///< wall clock
  Nanos duration = 0;
  ProcessEnd end;                        ///< of the command or rank; of the worker where its death ended the task
  std::uint64_t sent = 0, received = 0;  ///< bytes to and from the worker
  std::string_view tensors{};            ///< kOk: those it wrote, see wire/tensor_claims.h
};

/// An attempt failed and the task will be tried again.
struct TaskRetried {
  TaskId task = 0;
  int attempt = 1;  ///< the one that failed
  int worker = 0;
  std::string_view reason;  ///< one line
  Nanos start = 0;          ///< of that attempt, wall clock
  Nanos duration = 0;
  bool of_group = false;  ///< a rank, which starts again together with the others: a notice says so, for all of them
};

struct WorkerStarted {
  int worker = 0;
  std::int32_t pid = 0;
  std::string_view role = "worker";  ///< as in WorkerEnded
};
/// A stage of a start has begun. The first one is mprun's: it begins before the process exists.
struct WorkerStage {
  int worker = 0;         ///< -1: the host that forks the workers
  std::string_view text;  ///< "importing job.py", in the words of the process; empty: it is ready
  Nanos at = 0;           ///< wall clock
  bool first = false;
};
struct WorkerEnded {
  int worker = 0;
  std::int32_t pid = 0;
  std::string_view role;  ///< "worker", "rank", "command", "host"
  ProcessEnd end;
  bool expected = true;     ///< false: it died
  Nanos at = 0;             ///< wall clock
  std::string_view cpus{};  ///< that it was bound to, "0-3,8"; empty: it was not
};

/// Something the user should read: a warning, or with `explain` the reason of a decision.
struct Notice {
  enum class Kind { kInfo, kWarning, kError, kExplain } kind = Kind::kInfo;
  std::string_view text;  ///< may have several lines
  LogComponent from = LogComponent::kSchedule;
};

/// A hang was found, or what was found has changed.
struct HangFound {
  std::string_view text;     ///< human-readable, lines that end with newlines; empty: enough like it were reported
  std::string_view verdict;  ///< "deadlock", ...
  std::string_view cause;    ///< its stable id
  std::string_view file;     ///< of the whole report, relative to the run directory; empty: there is none
};

enum class WorkerState {
  kStarting,
  kIdle,  ///< it waits for a task
  kBusy,
  kStopped,  ///< by SIGSTOP, or a debugger
  kEnding,   ///< it was asked to end
};

/// What a worker does, and what it uses together with all its descendants.
struct WorkerView {
  int worker = 0;
  std::int32_t pid = 0;  ///< 0: there is no process at the moment
  WorkerState state = WorkerState::kStarting;
  std::optional<TaskId> task;
  double task_seconds = 0;   ///< since the task began
  double cpu = 0;            ///< seconds of CPU time, earlier workers of the slot included
  double load = 0;           ///< CPUs it kept busy between the last two looks: 1 is one of them all the time
  std::uint64_t memory = 0;  ///< bytes: PSS, or resident where that may not be read
  std::string cpus{};        ///< that it is bound to, "0-3,8"; empty: it is not bound
};

/// Sent about ten times a second while the job runs.
struct WorkersSeen {
  std::span<const WorkerView> workers;  ///< those that exist, by their numbers
  /// Wall clock of the look that `cpu`, `load` and `memory` are from; there is one about every second.
  Nanos measured = 0;
};

struct Counts {
  std::uint64_t read = 0, ok = 0, failed = 0, cancelled = 0, retried = 0;
  [[nodiscard]] std::uint64_t done() const { return ok + failed + cancelled; }
};

/// Sent at least ten times a second while the job runs.
struct Pulse {
  std::uint64_t done = 0, ok = 0, failed = 0, cancelled = 0, retried = 0;
  std::optional<std::uint64_t> total;
  int busy = 0, workers = 0;
  double elapsed = 0;       ///< seconds since the job began
  std::string_view phase;   ///< "starting", "running", "finishing", "stopping", "finished"
  std::string_view doing;   ///< the current wait: "setup()", "waiting for worker 3 to start"; empty while tasks run
  std::uint64_t bytes = 0;  ///< of results and tensors that tasks of this session have brought
};

/// The job and mprun are about to be stopped (Ctrl-Z).
struct Suspended {};

using JobEvent = std::variant<TaskEnded, TaskRetried, WorkerStarted, WorkerStage, WorkerEnded, Notice, HangFound,
                              WorkersSeen, Pulse, Suspended>;

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_event(const JobEvent& event) = 0;
};

}  // namespace mprun
