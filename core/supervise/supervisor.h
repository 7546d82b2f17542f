// Supervisor: the thin shell around the scheduler. It reads inputs, holds those in flight, lets a pool
// do what the scheduler decides, and informs the sinks. One thread, one event loop, no decisions.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/rendezvous.h"
#include "engine/engine.h"
#include "events/job_event.h"
#include "events/shared_tasks.h"
#include "job/inputs.h"
#include "job/spec.h"
#include "launch/launcher.h"
#include "supervise/cause_text.h"
#include "supervise/event_log.h"
#include "supervise/phase_text.h"
#include "supervise/scheduler.h"
#include "supervise/task_inputs.h"
#include "supervise/vital_signs.h"
#include "supervise/worker_pool.h"

namespace mprun {

/// How a job ended, before its records are closed.
struct JobOutcome {
  int exit_code = 0;  ///< of mprun(1), EXIT STATUS
  Counts counts;
  std::string launch_error;  ///< for exit code 3: why nothing could start
  double seconds = 0;
};

class Supervisor : private WorkerPoolListener, private EngineOwner {
 public:
  struct Setup {
    const JobSpec* spec = nullptr;
    InputSource* inputs = nullptr;
    std::string first_input;  ///< pulled already, to know that there is one
    TaskId first_task = 0;    ///< whose input that is: those before it have ended in earlier sessions
    Environment environment;  ///< mprun's own
    std::string run_dir;
    std::string bootstrap;
    AdapterFiles adapters;  ///< without what Engine::complete() adds
    std::optional<rlimit> open_files;
    Guard guard;
    std::vector<Sink*> sinks;
    Counts earlier;                                 ///< tasks that ended in earlier sessions
    std::function<bool(TaskId)> ended_earlier;      ///< which they are; not set: none
    HangMonitor* watch = nullptr;                   ///< always set
    std::function<std::optional<Error>()> failure;  ///< asked at every pulse: can results still be recorded?
    /// Whether what a task claims to have written (TaskReport::tensors) is there: the reason if it is not. Always set.
    std::function<std::optional<std::string>(TaskId, std::string_view input, const TaskReport&)> check_tensors;
    std::function<std::uint64_t()> tensor_bytes;  ///< of all that held, in this session; not set: 0
    std::function<void()> on_user_signal;         ///< SIGUSR1: a user asks what the job does
    std::string event_log;                        ///< where the scheduler's steps are written down; empty: nowhere
    Log* log = nullptr;                           ///< gets the same steps at LogLevel::kTrace
    std::optional<std::uint64_t> all_tasks;       ///< of all shards, where known
    SharedTasks* shared_tasks = nullptr;  ///< where tasks come from instead of `inputs`, if other mpruns run them too
    Rendezvous* rendezvous = nullptr;     ///< with ranks of other shards that start again together with ours
    bool in_batch_job = false;            ///< what ends it signals all its processes, SIGTERM first and SIGKILL later
  };
  explicit Supervisor(Setup setup);
  ~Supervisor() override;

  /// Runs the job to its end; nothing of it is alive afterwards. Errors: of the machine, before the start.
  [[nodiscard]] Result<JobOutcome> run();

 private:
  /// What the scheduler need not know of the end of a task: the task that a worker has reported, or has left.
  struct Ending {
    TaskInputs::Held task;
    const TaskReport* report = nullptr;  ///< nullptr: the worker is gone
    Departure gone;
  };

  /// The report of a rank whose result is held.
  struct HeldResult {
    std::string payload, tensors;
    TaskReport report;
    Ending ending;
  };

  // What the engine reports.
  void on_signals(const std::vector<signalfd_siginfo>& signals) override;
  void on_signals_lost(const Error& error) override;
  void on_note(const AdapterNote& note) override;
  void on_lost_lock(const SyncLoss& loss) override;

  // What the pool reports.
  void on_process_started(int slot, pid_t pid) override;
  void on_process_ended(int slot, pid_t pid, std::string_view role, ProcessEnd end, bool expected) override;
  void on_launch(int slot) override;
  void on_stage(int slot, std::string_view text) override;
  void on_attempt() override;
  void on_ready(int slot) override;
  void on_result(int slot, const TaskReport& report) override;
  void on_gone(int slot, const Departure& gone) override;
  void on_start_failed(const std::string& reason) override;

  // What the scheduler wants.
  void post(const Event& event) { post(event, Ending()); }
  void post(const Event& event, Ending ending);
  void step(const TimedEvent& event, Ending* ending);
  void write_down(const TimedEvent& event);
  void perform(action::ReadInputs& wanted);
  void perform(action::StartWorker& wanted);
  void perform(action::Assign& wanted);
  void perform(action::TakeBack& wanted);
  void perform(action::Retire& wanted);
  void perform(action::Signal& wanted);
  void hold_result(const action::HoldResult& wanted, Ending* ending);
  void end_task(const action::EndTask& wanted, const Ending& ending);
  void retry_task(const action::RetryTask& wanted, Ending* ending);

  [[nodiscard]] Result<void> prepare();
  void loop_until_over();
  void wind_down();
  void on_warning(int number);
  void await_own_sigterm(const ProcessEnd& end);
  void report_fatal();
  void look_at_memory(Nanos now);
  void report_workers(Nanos now);
  void look_for_hangs();
  [[nodiscard]] bool may_start_another() const;
  [[nodiscard]] std::vector<pid_t> own_processes(const HangMonitor::Finding& finding) const;
  void act_on(const HangMonitor::Finding& finding);
  void report_overdue(int slot, Cause cause);
  void reap_children();
  void pause_job();
  void tick();
  void meet_shards();
  [[nodiscard]] std::string why_failed() const;
  void pulse(std::string_view end = "");
  [[nodiscard]] PhaseFacts phase_facts() const;
  [[nodiscard]] bool reads_stdin() const;
  void publish(const JobEvent& event);
  void blame_rank(TaskId rank, std::string_view error);
  void announce_restart(const action::RetryTask& wanted, std::string_view reason, const TaskReport* report);
  [[nodiscard]] std::string restart_text(int attempt) const;
  void notice(Notice::Kind kind, std::string_view text, LogComponent from = LogComponent::kSchedule);
  [[nodiscard]] InputSource::Pull pull_input(std::string* text);
  void read_shared(std::uint64_t count);
  [[nodiscard]] std::string refusal(const TaskReport& report, const TaskInputs::Held& task) const;
  [[nodiscard]] std::string why_gone(int slot, Cause cause, const Ending& ending) const;
  [[nodiscard]] int exit_code() const;

  Setup setup_;
  Policy policy_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<WorkerPool> pool_;
  std::optional<Scheduler> scheduler_;
  std::optional<EventLog> event_log_;
  bool stepping_ = false;
  std::deque<std::pair<Event, Ending>> posted_;
  std::vector<Action> actions_;
  TaskInputs inputs_;
  TaskId next_input_ = 0;                        ///< the task whose input is read next
  std::map<int, HeldResult> held_results_;       ///< by slot
  int announced_ = 0;                            ///< the last attempt of ranks whose failure was reported
  std::string rank_failure_;                     ///< the last failure of a rank, for the other shards
  std::pair<GroupPhase, int> decided_;           ///< the last decision of the leader: phase and attempt
  std::map<TaskId, std::vector<Death>> deaths_;  ///< of workers, caused by tasks that have not ended
  std::string start_death_, launch_error_;
  std::map<pid_t, int> slots_;  ///< of the workers' processes
  std::set<pid_t> hosts_;
  std::map<int, std::string> stages_;  ///< of slots that start, -1: of the host: their current stage, in their words
  bool was_ready_ = false;             ///< any worker, ever
  std::uint64_t received_ = 0;         ///< bytes of results
  std::map<int, std::string>
      hung_;  ///< slots whose worker was killed because it hung, was too large, or took too long: why, or where
  int overdue_reports_ = 0;
  VitalSigns vital_signs_;
  Nanos last_report_ = 0;
  std::optional<Error> fatal_;
  bool fatal_reported_ = false;
  bool inputs_ended_ = false, waiting_for_input_ = false;
  std::uint64_t wanted_shared_ = 0;  ///< tasks that the scheduler waits for while other mpruns have them all
  std::uint64_t results_since_wait_ = 0;
  int stop_signal_ = 0;
  std::optional<Nanos> stop_by_;  ///< when what runs is killed, after a warning
  Nanos begun_ = 0, last_pulse_ = 0, last_tick_ = 0;
  Nanos wound_down_by_ = 0;
};

/// The parts of the spec that steer the schedule; `total`: the number of inputs where it is known.
[[nodiscard]] Policy policy_of(const JobSpec& spec, std::optional<std::uint64_t> total);

}  // namespace mprun
