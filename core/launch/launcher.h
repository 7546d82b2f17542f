// Launcher: starts Python processes for worker slots by one of the three start methods, and reports
// when they exist and when they are gone. Used by the worker pools; a process belongs to the launcher
// from launch() to on_process_gone().
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/process_end.h"
#include "job/spec.h"
#include "launch/environment.h"
#include "os/event_loop.h"
#include "os/fd.h"
#include "os/process.h"
#include "procfs/process_ref.h"
#include "wire/frames.h"

namespace mprun {

/// What every process of the job is started with.
struct LaunchPlan {
  const JobSpec* spec = nullptr;
  Environment environment;  ///< shared by all, see job_environment()
  std::string run_dir;
  std::string bootstrap;             ///< adapters/python/bootstrap.py as installed
  std::optional<rlimit> open_files;  ///< as mprun found it
  int claims = -1;                   ///< memory file, see wire/claim_table.h
  EventLoop* loop = nullptr;
  std::optional<std::uint64_t> tasks, rows;  ///< of all inputs, where known (InputSource::total(), rows())
};

/// The child's side of a new process: moved into it and closed here.
struct LaunchRequest {
  int slot = 0;
  Environment environment;  ///< the slot's own
  Fd channel, results, out, err;
};

class LauncherListener {
 public:
  virtual ~LauncherListener() = default;
  /// Opens the connections of a new process of `slot` just before it is launched, so that a slot that waits for its
  /// host costs no descriptors. nullopt: the process is not wanted any more.
  virtual std::optional<LaunchRequest> prepare_launch(int slot) = 0;
  virtual void on_launched(int slot, const ProcessRef& process) = 0;
  /// The process of `slot` ended (none: there never was one); its process group can still be signalled in this call.
  virtual void on_process_gone(int slot, const ProcessRef& process, ProcessEnd end) = 0;
  virtual void on_host_started(pid_t pid) = 0;
  /// The current stage of the host's start, in its own words; empty: it is ready.
  virtual void on_host_stage(std::string_view text) = 0;
  virtual void on_host_gone(pid_t pid, ProcessEnd end, bool expected) = 0;
  /// Nothing can be launched any more; `reason` says why and what to do.
  virtual void on_launch_failed(const std::string& reason) = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(int slot) = 0;
  /// A child of ours ended (it is reaped after this call). False: it does not belong to this launcher.
  virtual bool child_gone(pid_t pid, ProcessEnd end) = 0;
  /// A task has ended, so launched processes do their work.
  virtual void task_done() {}
  /// No more launches will come: a host may end.
  virtual void finish() = 0;
  /// Forces a host to end.
  virtual void kill_host() = 0;
  /// Whether a host runs (or is being started).
  [[nodiscard]] virtual bool has_host() const = 0;
};

/// The launcher for the spec's start method. `listener` outlives it.
[[nodiscard]] std::unique_ptr<Launcher> make_launcher(const LaunchPlan& plan, LauncherListener* listener);

/// The START frame of a process: role is "host", "worker" or "rank".
[[nodiscard]] std::string start_config(const LaunchPlan& plan, const std::string& role, int slot);

/// What the processes of a job begin with, however mprun was started: they have sessions of their own, and mprun ends
/// them itself. So no signal is blocked, and those that end or stop a process do so, SIGPIPE too. SIGHUP stays ignored
/// if it is: nohup means it. Slurm sends SIGUSR1 and SIGUSR2 to every process of a step: they are ignored there.
[[nodiscard]] Inheritance job_inheritance(const JobSpec& spec);

/// What bootstrap.py is started with: descriptors 3, 4 and 5 are channel, results and claims.
[[nodiscard]] SpawnPlan python_plan(const LaunchPlan& plan, const Environment& own, int channel, int results, int out,
                                    int err);

/// One error text for a Python that could not be executed.
[[nodiscard]] std::string explain_spawn_failure(const LaunchPlan& plan, const SpawnFailure& failure);

/// A member of a frame's JSON from a host or worker; `otherwise` if it is missing or has another type.
[[nodiscard]] int number_in(const Json& body, const char* key, int otherwise);
[[nodiscard]] std::string text_in(const Json& body, const char* key, const std::string& otherwise);

/// The human-readable text of a START_FAILED frame: message and traceback.
[[nodiscard]] std::string explain_start_failure(std::string_view payload);

/// The supervisor's side of its connections with a worker or rank.
struct WorkerChannels {
  FrameSender channel;
  Fd results;                   ///< non-blocking
  std::int64_t log_offset = 0;  ///< where this process's part of the slot's stderr log begins
};

/// Opens channel, results pipe and logs of a slot; the child's side goes into `*request`.
[[nodiscard]] Result<WorkerChannels> open_worker_channels(const std::string& run_dir, int slot, LaunchRequest* request);

/// Opens the log pair of a slot ("worker-3") for appending.
[[nodiscard]] Result<std::pair<Fd, Fd>> open_logs(const std::string& run_dir, std::string_view name);

/// The last lines (at most 10, at most 2 KiB) that were written to a log at or after `offset`.
[[nodiscard]] std::string log_tail(const std::string& path, std::int64_t offset);

}  // namespace mprun
