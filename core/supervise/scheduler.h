// Scheduler: every decision of a job, as a pure state machine: (state, event, now) -> actions. Which
// worker gets which task, what a death means, when to stop. No clock, no process, no file: the shell
// (supervisor.h) passes events in and performs the actions, so that it can be tested and simulated
// by the million. Owns the bookkeeping of tasks that are neither unread nor done.
//
// A slot's life:   absent -> starting -> ready -> retiring -> absent
//   StartWorker        WorkerReady   Retire      WorkerGone
// A worker that dies goes to absent from anywhere. Commands and ranks (one process a task) have
// slots that are ready all the time; their processes begin with Assign and end with TaskDone.
//
// A task whose worker died is a suspect: it is tried again alone, by a worker that has no other task, so that a second
// death is certainly its own and no other work is at risk. After that second death it waits until the others are done.
//
// Ranks that may be retried start again as a group (scheduler_ranks.cc).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cluster/rendezvous.h"
#include "events/job_event.h"

namespace mprun {

/// The parts of the job spec that steer the schedule.
struct Policy {
  int workers = 1;
  bool process_per_task = false;  ///< commands and ranks
  bool ranks = false;             ///< all tasks run at once; the first failure ends the others, or all start again
  std::optional<int> chunk_size;  ///< nullopt: adaptive
  int retries_on_error = 0;
  int retries_on_death = 1;
  int retries_on_hang = 1;
  Nanos retry_delay = 0;
  double retry_backoff = 1;              ///< each further delay is that many times the one before
  std::optional<Nanos> retry_max_delay;  ///< and at most this
  bool stop_on_error = false;
  std::optional<std::int64_t> max_failures;
  std::optional<Nanos> task_limit;
  std::optional<Nanos> job_limit;
  Nanos join_limit = 30 * kNanosPerSecond;
  Nanos grace = 5 * kNanosPerSecond;
  std::optional<int> tasks_per_worker;
  std::optional<std::uint64_t> total;  ///< number of tasks, where known
  Counts earlier;                      ///< tasks that ended before this session, of a run that is resumed
  bool shares_inputs = false;  ///< other mpruns take tasks from the same inputs: none is read before it is needed
  bool has_leader = false;     ///< ranks start, start again and end together with those of other shards

  /// Of ranks: how often all may start again, whatever the cause.
  [[nodiscard]] int most_restarts() const {
    return ranks ? std::max({retries_on_error, retries_on_death, retries_on_hang}) : 0;
  }
};

struct TaskAttempt {
  TaskId task = 0;
  int attempt = 1;
};

/// Why a task ended without a result of its own, or why the job stopped.
enum class Cause {
  kNone,
  kDeath,
  kTaskLimit,
  kJobLimit,
  kInterrupted,
  kErrorStop,
  kRankFailed,
  kJoinLimit,
  kHang,
  kMemory
};

namespace event {
struct Begin {};
/// The shell read `count` more inputs, of neighbouring tasks from `first` on; `ended`: there are no more. Tasks that
/// have ended in an earlier session are left out.
struct InputsRead {
  std::uint64_t count = 0;
  bool ended = false;
  TaskId first = 0;
};
struct WorkerReady {
  int slot = 0;
};
/// The oldest task in flight on `slot` ended by itself.
struct TaskDone {
  int slot = 0;
  bool failed = false;
  Nanos duration = 0;
  bool from_outside = false;  ///< its process was ended by a signal that any process may have sent
  bool died = false;          ///< its process was ended by a signal
};
/// The worker's process is gone. `started`: its oldest task in flight had begun. `from_outside`: by a signal that any
/// process may have sent, or together with its host; a start that was ended so may well succeed the next time.
struct WorkerGone {
  int slot = 0;
  bool started = false;
  bool from_outside = false;
};
/// A worker, or the host of all, reported why it cannot start: trying again would not help.
struct StartFailed {};
/// The last `count` tasks in flight on `slot` will not be started by it.
struct TakenBack {
  int slot = 0;
  std::uint32_t count = 0;
};
/// The worker can never go on: it is killed, and its task tried again.
struct WorkerHung {
  int slot = 0;
};
/// The worker uses more memory than it may: it is killed, and its task tried again.
struct WorkerTooLarge {
  int slot = 0;
};
/// The job must end, because something in it can never go on.
struct JobHung {};
/// Ctrl-C or SIGTERM: the first stops handing out, the second kills.
struct Interrupt {};
/// The job was stopped and continued: no limit counts that time.
struct Resumed {
  Nanos stopped_for = 0;
};
/// What the leader of all shards has decided of the ranks (Policy::has_leader).
struct GroupDecided {
  GroupPhase phase = GroupPhase::kGather;
  int attempt = 1;
};
/// Time passed; sent about 20 times a second.
struct Tick {};
}  // namespace event
using Event = std::variant<event::Begin, event::InputsRead, event::WorkerReady, event::TaskDone, event::WorkerGone,
                           event::StartFailed, event::TakenBack, event::Interrupt, event::WorkerHung,
                           event::WorkerTooLarge, event::JobHung, event::Resumed, event::GroupDecided, event::Tick>;

namespace action {
struct ReadInputs {
  std::uint64_t count = 0;
};
struct StartWorker {
  int slot = 0;
};
/// Hand these to the worker, after what it has.
struct Assign {
  int slot = 0;
  std::vector<TaskAttempt> tasks;
};
/// Take back what the worker has not started; answered by TakenBack at once.
struct TakeBack {
  int slot = 0;
};
/// Ask the worker to finish and exit.
struct Retire {
  int slot = 0;
};
struct Signal {
  int slot = 0;
  int signal = 0;
  Cause cause = Cause::kNone;
};
/// The task is over: with the result that was just reported (kNone), or for another cause.
struct EndTask {
  int slot = 0;
  TaskAttempt task;
  TaskStatus status = TaskStatus::kOk;
  Cause cause = Cause::kNone;
  Nanos running = 0;   ///< how long the attempt took, as far as the supervisor knows
  bool alone = false;  ///< its worker had been given nothing else
};
/// A rank ended well, but has to run again if another one fails: its result is kept until EndTask or RetryTask says for
/// its slot what becomes of it.
struct HoldResult {
  int slot = 0;
  TaskAttempt task;
};
/// The attempt failed, or was given up because another rank failed (kRankFailed), and the task is put back.
struct RetryTask {
  int slot = 0;
  TaskAttempt task;
  Cause cause = Cause::kNone;
  bool alone = false;  ///< as in EndTask, and so is
  Nanos running = 0;
};
}  // namespace action
using Action = std::variant<action::ReadInputs, action::StartWorker, action::Assign, action::TakeBack, action::Retire,
                            action::Signal, action::EndTask, action::HoldResult, action::RetryTask>;

class Scheduler {
 public:
  explicit Scheduler(Policy policy);

  /// Takes one event and appends what has to be done to `*actions`.
  void step(const Event& event, Nanos now, std::vector<Action>* actions);

  /// Nothing runs and nothing will.
  [[nodiscard]] bool over() const;
  /// Why no more tasks are handed out; kNone while they are.
  [[nodiscard]] Cause stopping() const { return stopping_; }
  [[nodiscard]] bool start_failed() const { return start_failed_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] int busy() const { return busy_; }
  [[nodiscard]] int alive() const { return alive_; }
  /// The oldest task in flight on a slot, if any.
  [[nodiscard]] std::optional<TaskAttempt> current(int slot) const;
  /// When that task began; the same clock as the `now` of step().
  [[nodiscard]] Nanos task_started(int slot) const { return at(slot).task_started; }
  /// What the worker of a slot does, as far as the scheduler knows; nullopt: there is none.
  [[nodiscard]] std::optional<WorkerState> state(int slot) const;
  [[nodiscard]] std::size_t in_flight(int slot) const { return at(slot).in_flight.size(); }
  /// Tasks that were read, have not ended and are in flight nowhere.
  [[nodiscard]] std::uint64_t waiting() const {
    return fresh_count_ + returned_.size() + suspects_.size() + outcasts_.size() + delayed_.size() + again_.size();
  }
  /// Ranks that have ended well and whose results are held.
  [[nodiscard]] std::uint64_t held() const { return held_.size(); }
  /// What the ranks do, and in which attempt: for the leader of all shards.
  [[nodiscard]] std::pair<RankState, int> rank_state() const;
  /// Moving average of a task's seconds; 0 before the first.
  [[nodiscard]] double average_seconds() const { return average_; }

 private:
  enum class State { kAbsent, kStarting, kReady, kRetiring };
  struct Worker {
    State state = State::kAbsent;
    std::deque<TaskAttempt> in_flight;
    Nanos task_started = 0;           ///< of the oldest in flight
    int handed = 0;                   ///< tasks given to this process
    Cause kill_cause = Cause::kNone;  ///< why TERM was sent
    std::optional<Nanos> deadline;    ///< of the next step: join limit, then grace
    bool killed = false;
    bool alone = false;       ///< it has a suspect, and gets nothing else
    bool used = false;        ///< it has ended a task
    bool asked_back = false;  ///< TakenBack will say which part of its queue is no longer its own
    [[nodiscard]] bool idle() const {
      return state == State::kReady && in_flight.empty() && kill_cause == Cause::kNone;
    }
  };
  struct Waiting {
    TaskAttempt task;
    bool suspect = false;
  };
  struct Held {
    TaskAttempt task;
    Nanos running = 0;
  };

  void on(const event::Begin& e);
  void on(const event::InputsRead& e);
  void on(const event::WorkerReady& e);
  void on(const event::TaskDone& e);
  void on(const event::WorkerGone& e);
  void on(const event::StartFailed& e);
  void on(const event::TakenBack& e);
  void on(const event::WorkerHung& e);
  void on(const event::WorkerTooLarge& e);
  void on(const event::JobHung& e);
  void on(const event::Interrupt& e);
  void on(const event::Resumed& e);
  void on(const event::GroupDecided& e);
  void on(const event::Tick& e);

  Worker& at(int slot) { return workers_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Worker& at(int slot) const { return workers_[static_cast<std::size_t>(slot)]; }
  void emit(Action action) { actions_->push_back(std::move(action)); }

  void start_worker(int slot);
  void count_failed_start(int slot, bool starting, bool own);
  void hand_out(int slot, TaskAttempt task);
  void feed(int slot);
  bool feed_suspect(int slot);
  void put_back(TaskAttempt task, bool suspect);
  [[nodiscard]] Nanos delay_after(int attempt) const;
  void feed_all();
  void assign_or_retire(int slot);
  void read_ahead();
  [[nodiscard]] std::uint64_t wanted_ahead() const;
  void steal();
  void take_back(int slot);
  void pop_current(Worker* worker);
  [[nodiscard]] int retries_after(Cause cause, bool died) const;
  void settle_failure(int slot, TaskAttempt task, Cause cause, Nanos running, bool alone = false, bool died = false);
  void end_task(int slot, TaskAttempt task, TaskStatus status, Cause cause, Nanos running, bool alone = false);
  [[nodiscard]] bool is_going() const { return stopping_ == Cause::kNone && !start_failed_; }
  [[nodiscard]] bool may_run_again(TaskAttempt task) const;
  void end_held();
  void restart_group(int slot, TaskAttempt task, Cause cause, Nanos running);
  void end_attempt();
  void run_again(int slot, TaskAttempt task, Cause cause, Nanos running);
  void regroup();
  [[nodiscard]] bool is_ready() const;
  void begin_attempt();
  void stop(Cause cause);
  void stop_ranks(Cause cause);
  void kill_at_once(int slot, Cause cause);
  void terminate(int slot, Cause cause);
  void retire(int slot);
  void check_deadlines(int slot);
  [[nodiscard]] bool work_left() const;
  [[nodiscard]] bool ready_to_assign() const;
  [[nodiscard]] std::size_t wanted_depth() const;
  [[nodiscard]] TaskAttempt take_next();

  Policy policy_;
  std::vector<Worker> workers_;
  std::vector<int> failed_starts_;  ///< by slot: the weight of workers in a row that began no task
  std::vector<Action>* actions_ = nullptr;
  Nanos now_ = 0, begun_ = 0;
  std::deque<std::pair<TaskId, TaskId>> fresh_;  ///< runs of tasks that were read and never assigned: begin, end
  std::uint64_t fresh_count_ = 0;                ///< of tasks in them
  bool inputs_ended_ = false, reading_ = false;
  std::deque<TaskAttempt> returned_;       ///< taken back or to be retried at once: before fresh ones
  std::deque<TaskAttempt> suspects_;       ///< each to be tried alone, before all others
  std::deque<TaskAttempt> outcasts_;       ///< those of them that have ended two workers or more: after all others
  std::multimap<Nanos, Waiting> delayed_;  ///< retries with a delay, by the time when it is over
  int attempt_ = 1;                        ///< of ranks: the one that runs or comes next
  std::map<int, Held> held_;               ///< by slot: ranks that ended well
  bool regrouping_ = false;                ///< all ranks end, to start again together
  std::map<int, TaskId> again_;            ///< by slot: ranks that wait for the others to end
  std::optional<Nanos> next_attempt_at_;   ///< all have ended: when they start again
  bool awaits_leader_ = false;             ///< the leader of all shards has not decided yet that all ended well
  Cause stopping_ = Cause::kNone;
  Nanos stop_deadline_ = 0;
  int interrupts_ = 0, start_deaths_ = 0, busy_ = 0, alive_ = 0;
  bool start_failed_ = false;
  double average_ = 0;
  Counts counts_;
};

}  // namespace mprun
