// Session: one life of mprun. It models the shell and its surroundings (supervisor, pool, hosts, workers, inputs,
// clock, disk), drives a Scheduler through them by random choices, and shows each step to the Oracle. What the
// shell and the worker pools cannot deliver does not happen here: messages of a worker arrive in order, those that
// it wrote before it died arrive before its end, and TakenBack and InputsRead are queued after what the shell is
// currently doing.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "oracle.h"
#include "scenario.h"
#include "stats.h"

namespace mprun::simulation {

/// What outlives mprun: which tasks have ended, in order; a crash of the machine may lose the last `unsynced` ends.
struct Journal {
  struct End {
    TaskId task = 0;
    TaskStatus status = TaskStatus::kOk;
  };
  std::vector<End> ends;
  std::size_t unsynced = 0;
};

class Session {
 public:
  enum class End { kOver, kCrashed, kFailed };
  struct Setup {
    const Scenario* scenario = nullptr;
    Policy policy;
    bool calm = false;                ///< no trouble at all
    std::vector<bool> ended_earlier;  ///< of each task
    Journal* journal = nullptr;
    Choices* choices = nullptr;
    Stats* stats = nullptr;
    std::string* log = nullptr;  ///< may be nullptr
  };
  explicit Session(Setup setup);
  [[nodiscard]] End run();
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] const Scheduler& scheduler() const { return scheduler_; }

 private:
  enum class Life {
    kNone,
    kQueued,  ///< to be started, or, for a slot without processes, to be reported ready
    kAlive,
    kDead,  ///< and the shell does not know yet
  };
  enum class Message { kReady, kStartFailed, kOk, kFailed };
  /// The process of a slot and what has not reached mprun yet.
  struct Process {
    Life life = Life::kNone;
    bool said_ready = false, hung = false, running = false;
    bool term = false, kill = false, stop = false;  ///< sent to it: signals, and the request to end
    bool to_be_gone = false;                        ///< of a slot without a process: WorkerGone follows
    bool signalled = false;                         ///< kDead: by a signal that any process may have sent
    std::uint32_t unclaimed = 0;                    ///< tasks that it may start
    std::deque<Message> pipe;
  };

  // the shell
  void post(const Event& event);
  void perform(const action::ReadInputs& wanted);
  void perform(const action::StartWorker& wanted);
  void perform(const action::Assign& wanted);
  void perform(const action::TakeBack& wanted);
  void perform(const action::Retire& wanted);
  void perform(const action::Signal& wanted);
  void perform(const action::EndTask& wanted);
  void perform(const action::HoldResult& /*wanted*/) {}
  void perform(const action::RetryTask& /*wanted*/) {}
  void deliver(int slot, Message message);
  void deliver_all(int slot);

  // what happens
  void trouble();
  void rare_trouble();
  void pass_time();
  void more_input();
  void find_hang(int slot);
  void find_large(int slot);
  void fill_disk();
  void leader_decides();
  void duplicate(int slot);
  void happen(int slot);
  void happen_queued(int slot);
  void happen_alive(int slot);
  void happen_in_task(int slot);
  void happen_idle(int slot);
  void obey_signal(int slot);
  void happen_starting(int slot);
  void happen_process(int slot);
  void launch_fails();
  void end_process(int slot, bool failed);
  void die(int slot);
  void all_obey();
  void calm_round(Nanos passes);

  [[nodiscard]] bool may(bool trouble, std::uint32_t n) { return trouble && !calm_ && setup_.choices->one_in(n); }
  [[nodiscard]] bool going_on() const { return !crashed_ && failure_.empty() && !scheduler_.over(); }
  [[nodiscard]] Nanos duration();
  void note(int slot, const char* what);
  Process& at(int slot) { return processes_[static_cast<std::size_t>(slot)]; }

  Setup setup_;
  const Scenario& scenario_;
  Choices& choices_;
  Stats& stats_;
  Scheduler scheduler_;
  Oracle oracle_;
  std::vector<Process> processes_;
  std::string failure_;
  bool calm_ = false, crashed_ = false, stepping_ = false, disk_full_ = false;
  Nanos now_ = 1000 * kNanosPerSecond;
  std::deque<Event> posted_;
  TaskId next_input_ = 0, readable_ = 0;  ///< inputs: the next, and the first not available yet
  std::uint64_t wanted_inputs_ = 0;       ///< requested while none was available
};

}  // namespace mprun::simulation
