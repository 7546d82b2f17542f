// WorkerPool: the processes that do the work, behind one interface for the supervisor. A pool starts what the
// scheduler asks for and reports the outcome to its listener; it decides nothing. It never calls the
// listener from inside one of its own commands, so that every step of the scheduler ends before the next.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_end.h"
#include "base/result.h"
#include "launch/launcher.h"
#include "supervise/scheduler.h"

namespace mprun {

/// One task on its way to a worker.
struct HandedTask {
  TaskAttempt task;
  std::string_view input;     ///< JSON text
  bool has_no_input = false;  ///< it could not be read: nothing runs, and the task fails
};

/// The outcome of the oldest task in flight of a slot.
struct TaskReport {
  bool failed = false;
  Nanos start = 0;  ///< wall clock
  Nanos duration = 0;
  std::string_view payload;    ///< JSON: the value, or {type, message, traceback}
  ProcessEnd end;              ///< of a command or rank
  std::string_view tensors{};  ///< what it claims to have written, see wire/tensor_claims.h
  Nanos read = 0;              ///< the monotonic clock when mprun had read that claim, or just before
};

/// How a worker left.
struct Departure {
  bool started = false;         ///< its oldest task in flight had begun
  bool broke_channels = false;  ///< mprun killed it for what it had done to its channels
  ProcessEnd end;
  std::string why, log;  ///< human-readable; the last lines of its log
  pid_t pid = 0;
};

class WorkerPoolListener {
 public:
  virtual ~WorkerPoolListener() = default;
  virtual void on_process_started(int slot, pid_t pid) = 0;
  virtual void on_process_ended(int slot, pid_t pid, std::string_view role, ProcessEnd end, bool expected) = 0;
  /// A worker is about to be launched. Its stages follow, maybe before on_process_started().
  virtual void on_launch(int slot) = 0;
  /// The current stage of a worker's start, in its own words; -1: of the host's, where empty means that it is ready.
  virtual void on_stage(int slot, std::string_view text) = 0;
  /// The first rank of an attempt is about to be launched, and none runs.
  virtual void on_attempt() = 0;
  virtual void on_ready(int slot) = 0;
  virtual void on_result(int slot, const TaskReport& report) = 0;
  virtual void on_gone(int slot, const Departure& gone) = 0;
  /// No worker can start: `reason` says why and what to do.
  virtual void on_start_failed(const std::string& reason) = 0;
};

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  virtual void start(int slot) = 0;
  virtual void assign(int slot, const std::vector<HandedTask>& tasks) = 0;
  /// Takes back what the worker has not started; returns how many tasks.
  virtual std::uint32_t take_back(int slot) = 0;
  virtual void retire(int slot) = 0;
  /// Signals the process group of a slot.
  virtual void signal(int slot, int signal) = 0;
  /// A child of mprun ended and will be reaped after this call. False: it does not belong to this pool.
  virtual bool child_gone(pid_t pid, ProcessEnd end) = 0;
  /// The job is over: hosts may end. idle() says when they have.
  virtual void finish() = 0;
  virtual void kill_hosts() = 0;
  [[nodiscard]] virtual bool idle() const = 0;
  /// Its processes are children of mprun itself, not of a host.
  [[nodiscard]] virtual bool has_no_hosts() const = 0;
};

/// The pool for the job's kind. `plan` is copied, `listener` outlives the pool.
[[nodiscard]] Result<std::unique_ptr<WorkerPool>> make_worker_pool(const LaunchPlan& plan,
                                                                   WorkerPoolListener* listener);

}  // namespace mprun
