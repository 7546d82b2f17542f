// Engine: the event loop in which a job or `mprun -- COMMAND` runs. It receives the signals, the notes of the adapters
// and the ends of processes, passes on what its owner must act on, and wakes those that wait for a process that has
// died. If the guard dies, it ends everything below mprun. It tells a service manager that what runs has begun, and
// then that it moves. Lives in the supervisor's process, on its only thread.
#pragma once

#include <sys/signalfd.h>

#include <memory>
#include <vector>

#include "engine/hang_monitor.h"
#include "launch/environment.h"
#include "launch/guard.h"
#include "os/event_loop.h"
#include "os/service_notifier.h"
#include "procfs/process_ref.h"
#include "sync/sync_segment.h"
#include "wire/notes.h"

namespace mprun {

/// How long killed processes have to be gone.
inline constexpr double kKillSeconds = 2;

class EngineOwner {
 public:
  EngineOwner() = default;
  EngineOwner(const EngineOwner&) = delete;
  EngineOwner& operator=(const EngineOwner&) = delete;
  virtual ~EngineOwner() = default;
  /// All that have arrived, in their order; SIGCHLD is among them.
  virtual void on_signals(const std::vector<signalfd_siginfo>& signals) = 0;
  /// No signal can be received any more.
  virtual void on_signals_lost(const Error& error) = 0;
  /// A note that is not for the watch.
  virtual void on_note(const AdapterNote& note) = 0;
  /// A process has died while others waited for it.
  virtual void on_lost_lock(const SyncLoss& loss) = 0;
};

class Engine {
 public:
  struct Setup {
    Guard guard;
    bool of_program = false;       ///< for taken_signals()
    bool batches_notes = true;     ///< false: each is taken at once, for a sender that waits for that
    HangMonitor* watch = nullptr;  ///< must outlive the engine
  };
  /// From now on the signals are blocked. `owner` must outlive the engine.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> create(Setup setup, EngineOwner* owner);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Adds to the adapters' files where what is started finds this engine: notes, deadlines, shared objects.
  void complete(AdapterFiles* files) const;
  [[nodiscard]] EventLoop& loop() { return loop_; }
  /// As EventLoop::run_once().
  [[nodiscard]] Result<void> run_once(Nanos patience);
  void take_notes();
  /// Makes the named objects of the processes (locks, queues, ...) what they were at the first call.
  void renew_objects() { sync_.renew(); }
  /// What the owner runs has begun. From now on the service manager, if there is one, hears that it moves.
  void begin();
  /// A hang of what the owner runs is proved: that does not move as long as one of these processes lives.
  void stand_still(const std::vector<pid_t>& stuck);
  /// A process has died: those that wait for it get no notice by themselves.
  void settle_locks();

 private:
  Engine(Setup setup, EngineOwner* owner, EventLoop loop, NoteBox notes, SyncSegment sync)
      : setup_(std::move(setup)),
        service_(ServiceNotifier::from_environment(setup_.guard.pid)),
        owner_(owner),
        loop_(std::move(loop)),
        notes_(std::move(notes)),
        sync_(std::move(sync)) {}
  [[nodiscard]] Result<void> listen();
  void read_signals();
  void rest();
  [[nodiscard]] bool moves();
  void say_alive();

  Setup setup_;
  ServiceNotifier service_;
  std::vector<ProcessRef> stuck_;  ///< of proved hangs
  EngineOwner* owner_;
  EventLoop loop_;
  Fd signals_;
  NoteBox notes_;
  SyncSegment sync_;
  bool rests_ = false;     ///< notes and ends wait to be taken together
  Nanos next_waking_ = 0;  ///< of those whose waker died unreported
};

}  // namespace mprun
