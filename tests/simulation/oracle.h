// Oracle: what must hold for the scheduler's answers, whatever happens. It keeps its own books of tasks and slots,
// from events and actions alone, and checks each action against what the books allow, and the whole step against what
// they demand. Used by Session, which reports each step to it; owns the books.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stats.h"
#include "supervise/scheduler.h"

namespace mprun::simulation {

enum class TaskState : std::uint8_t { kUnread, kWaiting, kInFlight, kHeld, kDelayed, kEnded };
/// By how many workers have died of a task, or with it: after the first death it is tried alone, after the second when
/// there is nothing else to do.
enum class Trust : std::uint8_t { kTrusted, kSuspect, kOutcast };

struct TaskBook {
  TaskState state = TaskState::kUnread;
  Trust trust = Trust::kTrusted;
  bool handed_out = false;
  int attempt = 1;    ///< the one that runs or comes next
  Nanos ready = 0;    ///< kDelayed: not before
  int slot = -1;      ///< of a rank: where it ran
  Nanos running = 0;  ///< kHeld: how long it ran
};

struct SlotBook {
  bool present = false, ready = false, retired = false;  ///< StartWorker, WorkerReady, Retire, until WorkerGone
  std::deque<TaskAttempt> held;                          ///< as the shell holds them: without those taken back
  int take_backs = 0;                                    ///< asked for and not yet answered
  int handed = 0;
  Nanos head_since = 0, retired_at = 0;
  Cause cause = Cause::kNone;  ///< of the first signal
  std::optional<Nanos> term_at;
  bool killed = false;
  bool alone = false;  ///< it has a task that is tried alone
  bool used = false;   ///< it has ended a task
  [[nodiscard]] bool idle() const { return present && ready && !retired && cause == Cause::kNone && held.empty(); }
};

/// Inputs that the scheduler may ask for before their tasks run.
inline constexpr std::uint64_t kMostReadAhead = 8192;

/// For these a task that is ended counts as cancelled.
constexpr bool stops_by_us(Cause cause) {
  return cause == Cause::kInterrupted || cause == Cause::kJobLimit || cause == Cause::kErrorStop ||
         cause == Cause::kRankFailed;
}

class Oracle {
 public:
  /// `ended_earlier` and `scheduler` outlive this.
  Oracle(const Policy& policy, std::uint64_t total, const std::vector<bool>* ended_earlier, const Scheduler* scheduler,
         Stats* stats);

  /// Called before the scheduler sees the event.
  void expect(const Event& event, Nanos now);
  /// The scheduler's answer, before any of it is carried out.
  void check(const Event& event, const std::vector<Action>& actions);
  /// The shell has taken back `count` tasks from the end of what `slot` holds.
  void took_back(int slot, std::uint32_t count);
  /// The job is over.
  void check_end(bool complete);

  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }
  [[nodiscard]] const SlotBook& slot(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }

 private:
  struct Ending {
    int slot = 0;
    TaskAttempt task;
    bool failed = false;
    Cause cause = Cause::kNone;  ///< of a signal before, or of a death
    Nanos running = 0;
    bool alone = false;  ///< its worker died and had been given nothing else
    bool died = false;
  };

  void fail(const std::string& text);
  void require(bool holds, const char* text) {
    if (!holds) fail(text);
  }
  SlotBook& at(int slot);
  TaskBook& task(TaskId task);
  void move(TaskId task, TaskState state);
  void count_failed_start(const SlotBook& book, const event::WorkerGone& e);
  void allow_trust(const SlotBook& book, const TaskBook& known);
  void release_delayed();

  [[nodiscard]] Cause cause_of_end(const SlotBook& book, bool from_outside, Cause own) const;
  void before(const event::Begin& e);
  void before(const event::InputsRead& e);
  void before(const event::WorkerReady& e);
  void before(const event::TaskDone& e);
  void before(const event::WorkerGone& e);
  void before(const event::StartFailed& e);
  void before(const event::TakenBack& e);
  void before(const event::WorkerHung& e);
  void before(const event::WorkerTooLarge& e);
  void before(const event::JobHung& e);
  void before(const event::Interrupt& e);
  void before(const event::Resumed& e);
  void before(const event::GroupDecided& e);
  void before(const event::Tick& e);

  void allow(const action::ReadInputs& a);
  void allow(const action::StartWorker& a);
  void allow(const action::Assign& a);
  void allow(const action::TakeBack& a);
  void allow(const action::Retire& a);
  void allow(const action::Signal& a);
  void allow_term(const SlotBook& book, const action::Signal& a);
  void allow_kill(const SlotBook& book, const action::Signal& a);
  void allow(const action::EndTask& a);
  void allow_held_to_end(const action::EndTask& a);
  void allow(const action::HoldResult& a);
  void allow(const action::RetryTask& a);
  void allow_group(const action::RetryTask& a);
  void allow_seat(int slot, TaskAttempt given);
  void end_attempt();
  void release_group();
  [[nodiscard]] bool is_ready() const;
  void check_group();

  void stop(Cause cause, Nanos deadline);
  [[nodiscard]] bool bounded() const { return stop_ != Cause::kNone && stop_ != Cause::kErrorStop; }
  [[nodiscard]] bool going() const { return stop_ == Cause::kNone && !start_failed_; }
  [[nodiscard]] std::uint64_t number(TaskState state) const { return numbers_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] std::uint64_t waiting(Trust trust) const { return waiting_[static_cast<std::size_t>(trust)]; }
  [[nodiscard]] Nanos delay_after(int attempt) const;
  [[nodiscard]] bool work_left() const;
  [[nodiscard]] bool has_attempts(Cause cause, int attempt, bool died) const;
  [[nodiscard]] bool is_cut_short(const Ending& ending) const;
  [[nodiscard]] bool may_retry(Cause cause, int attempt, bool died) const;
  [[nodiscard]] bool may_run_again() const;
  void check_books();
  void check_stop();
  void check_tick();
  void check_due(const SlotBook& book);

  Policy policy_;
  const std::vector<bool>* ended_earlier_;
  const Scheduler* scheduler_;
  Stats* stats_;
  std::optional<std::string> failure_;
  std::vector<SlotBook> slots_;
  std::vector<TaskBook> tasks_;
  std::array<std::uint64_t, 6> numbers_{};  ///< of tasks in each state
  std::array<std::uint64_t, 3> waiting_{};  ///< kWaiting: by trust
  std::vector<int> failed_starts_;          ///< of each slot: weight of its workers in a row that began no task
  std::multimap<Nanos, TaskId> delays_;
  std::uint64_t fresh_ = 0;  ///< read and never handed out
  TaskId next_read_ = 0, next_fresh_ = 0;
  bool reading_ = false, inputs_ended_ = false, start_failed_ = false;
  bool any_done_ = false;  ///< so it may be known how long tasks take
  Nanos now_ = 0, begun_ = 0, stop_deadline_ = 0;
  Cause stop_ = Cause::kNone, stop_before_ = Cause::kNone;
  bool start_failed_before_ = false;
  bool rank_failed_ = false;  ///< in this step: all others must be ended at once
  int attempt_ = 1;           ///< of ranks
  bool regrouping_ = false;   ///< all ranks end, to start again together
  std::optional<Nanos> next_attempt_at_;
  bool awaits_leader_ = false;  ///< the leader of all shards has not decided yet that all ended well
  int interrupts_ = 0, start_deaths_ = 0, pending_take_backs_ = 0;
  std::optional<Cause> kill_all_;         ///< the current event demands that all be killed at once, for this
  int kill_slot_ = -1;                    ///< or this one,
  Cause kill_slot_cause_ = Cause::kNone;  ///< for this
  std::optional<Ending> ending_;
  std::vector<bool> asked_back_;  ///< slots that TakeBack was sent to in this step
  Counts counts_;
};

}  // namespace mprun::simulation
