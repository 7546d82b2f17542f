#include "supervise/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/exit_codes.h"
#include "launch/teardown.h"
#include "os/signal_set.h"
#include "os/uninterrupted.h"
#include "supervise/cause_text.h"
#include "supervise/pace.h"

namespace mprun {
namespace {

constexpr timespec kBatchPause{0, 500'000};
// From the warning of a batch system until we kill everything. Slurm does that 30 s after its SIGTERM, and files have
// to be closed before.
constexpr double kWarnedSeconds = 18;
// The time for our own SIGTERM to arrive, after another process got one.
constexpr timespec kSameSignal{0, 100'000'000};

std::string_view role_of(JobKind kind) {
  return kind == JobKind::kRanks ? "rank" : kind == JobKind::kCommand ? "command" : "worker";
}

}  // namespace

Supervisor::Supervisor(Setup setup)
    : setup_(std::move(setup)),
      policy_(policy_of(*setup_.spec, setup_.inputs->total())),
      inputs_(setup_.spec->processes),
      vital_signs_(*setup_.spec) {
  policy_.earlier = setup_.earlier;
  policy_.shares_inputs = setup_.shared_tasks != nullptr;
  if (policy_.shares_inputs) policy_.total.reset();  // how many will be ours is not known
  next_input_ = setup_.first_task;
}

Supervisor::~Supervisor() = default;

Result<JobOutcome> Supervisor::run() {
  if (auto prepared = prepare(); !prepared) return prepared.error();
  begun_ = monotonic_now();
  pulse();
  post(event::Begin{});
  engine_->begin();
  loop_until_over();
  meet_shards();   // others must not wait for us
  report_fatal();  // it may have come with the last event
  JobOutcome outcome;
  outcome.exit_code = exit_code();
  outcome.counts = scheduler_->counts();
  outcome.launch_error = launch_error_.empty() ? start_death_ : launch_error_;
  wind_down();
  outcome.seconds = to_seconds(monotonic_now() - begun_);
  pulse("finished");
  pool_.reset();
  return outcome;
}

Result<void> Supervisor::prepare() {
  auto engine = Engine::create({.guard = setup_.guard, .watch = setup_.watch}, this);
  if (!engine) return engine.error();
  engine_ = std::move(*engine);
  engine_->complete(&setup_.adapters);
  LaunchPlan plan;
  plan.spec = setup_.spec;
  plan.environment = job_environment(*setup_.spec, setup_.environment, setup_.run_dir);
  add_adapters(&plan.environment, setup_.adapters, setup_.spec->adapters_off);
  plan.run_dir = setup_.run_dir;
  plan.bootstrap = setup_.bootstrap;
  plan.open_files = setup_.open_files;
  plan.loop = &engine_->loop();
  plan.tasks = setup_.all_tasks;
  plan.rows = setup_.inputs->rows();
  auto pool = make_worker_pool(plan, this);
  if (!pool) return pool.error();
  pool_ = std::move(*pool);
  scheduler_.emplace(policy_);
  if (!setup_.event_log.empty()) {
    auto log = EventLog::open(setup_.event_log, policy_);
    if (!log) return log.error();
    event_log_.emplace(std::move(*log));
  }
  return {};
}

void Supervisor::loop_until_over() {
  const bool answers = reads_stdin() && setup_.spec->results == "-";
  const std::uint64_t shards = setup_.spec->shard.value_or(Shard{}).count;
  std::optional<Nanos> give_up;  // after a fault of our own we may see no process end any more
  while (!scheduler_->over()) {
    if (auto waited = engine_->run_once(kTickEvery); !waited) {  // no event can arrive any more
      fatal_ = waited.error();
      return;
    }
    tick();
    if (fatal_ && !give_up) give_up = monotonic_now() + policy_.grace + from_seconds(kKillSeconds);
    if (give_up && monotonic_now() > *give_up) return;
    const Nanos now = monotonic_now();
    look_at_memory(now);
    report_workers(now);
    look_for_hangs();
    // Many short tasks: let results gather for half a millisecond, so that a wake-up brings a hundred
    // of them. The workers have work queued for far longer than that.
    const double task_seconds = scheduler_->average_seconds();
    if (results_since_wait_ > 0 && task_seconds < kShortTask) nanosleep(&kBatchPause, nullptr);
    const Nanos every = write_results_every(shards, answers, task_seconds, results_since_wait_);
    if (results_since_wait_ > 0 && monotonic_now() - last_pulse_ >= every) pulse();
    results_since_wait_ = 0;
  }
}

// The hosts end; then whatever else is left does.
void Supervisor::wind_down() {
  pool_->finish();
  const bool normal = scheduler_->stopping() == Cause::kNone && !scheduler_->start_failed();
  wound_down_by_ = monotonic_now() + (normal ? policy_.join_limit : policy_.grace);
  while (!pool_->idle() && monotonic_now() < wound_down_by_) {
    if (!engine_->run_once(kTickEvery)) break;
    tick();
  }
  if (!pool_->idle())
    notice(Notice::Kind::kWarning, "the host did not end in time and was killed", LogComponent::kLaunch);
  pool_->kill_hosts();
  const Nanos until = monotonic_now() + from_seconds(kKillSeconds);
  while (!pool_->idle() && monotonic_now() < until) {
    if (!engine_->run_once(kTickEvery)) break;
  }
  const int killed = kill_descendants(kKillSeconds);
  if (killed > 0) {
    notice(Notice::Kind::kWarning,
           std::to_string(killed) + (killed == 1 ? " process" : " processes") + " that tasks had left behind " +
               (killed == 1 ? "was" : "were") + " killed",
           LogComponent::kLaunch);
  }
}

// --- events in, actions out ---

void Supervisor::post(const Event& event, Ending ending) {
  if (std::exchange(stepping_, true)) {
    posted_.emplace_back(event, std::move(ending));
    return;
  }
  step({monotonic_now(), event}, &ending);
  for (; !posted_.empty(); posted_.pop_front()) {
    auto& [next, its_ending] = posted_.front();
    step({monotonic_now(), next}, &its_ending);
  }
  stepping_ = false;
}

void Supervisor::step(const TimedEvent& event, Ending* ending) {
  actions_.clear();
  scheduler_->step(event.event, event.at, &actions_);
  const bool logs = takes(setup_.log, LogComponent::kSchedule, LogLevel::kTrace);
  if (event_log_ || logs) write_down(event);
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    if (const auto* ended = std::get_if<action::EndTask>(&actions_[i])) {
      auto held = held_results_.extract(ended->slot);
      end_task(*ended, held ? held.mapped().ending : *ending);
    } else if (const auto* again = std::get_if<action::RetryTask>(&actions_[i])) {
      auto held = held_results_.extract(again->slot);
      retry_task(*again, held ? &held.mapped().ending : ending);
    } else if (const auto* hold = std::get_if<action::HoldResult>(&actions_[i])) {
      hold_result(*hold, ending);
    } else {
      std::visit(
          [this](auto& wanted) {
            if constexpr (requires { perform(wanted); }) perform(wanted);
          },
          actions_[i]);
    }
  }
}

void Supervisor::write_down(const TimedEvent& event) {
  const std::string text = step_text(event, actions_);
  if (setup_.log != nullptr) setup_.log->write(LogComponent::kSchedule, LogLevel::kTrace, text);
  if (!event_log_) return;
  if (const auto written = event_log_->write(text); !written) {
    event_log_.reset();
    notice(Notice::Kind::kWarning, setup_.event_log + " ends here: " + written.error().message, LogComponent::kRecord);
  }
}

void Supervisor::perform(action::StartWorker& wanted) { pool_->start(wanted.slot); }

void Supervisor::perform(action::Retire& wanted) { pool_->retire(wanted.slot); }

void Supervisor::perform(action::Signal& wanted) {
  const bool joins = wanted.cause == Cause::kJoinLimit;
  if (wanted.signal == SIGTERM && (joins || wanted.cause == Cause::kTaskLimit))
    report_overdue(wanted.slot, wanted.cause);
  if (wanted.signal == SIGTERM && joins) {
    notice(Notice::Kind::kWarning, cause_text(wanted.cause, policy_, wanted.slot, ""));
  }
  for (const auto& [pid, slot] : slots_) {
    if (slot == wanted.slot) setup_.watch->expect_end(pid);
  }
  pool_->signal(wanted.slot, wanted.signal);
}

// --- what the pool reports ---

void Supervisor::on_gone(int slot, const Departure& gone) {
  await_own_sigterm(gone.end);
  Ending ending;
  ending.gone = gone;
  if (!gone.why.empty()) ending.gone.why += vital_signs_.memory_text(gone.end);
  const bool idle = inputs_.has_none(slot);
  // Of use where the job ends because of such deaths; else it was ended for that.
  if (!gone.why.empty() && (idle || !gone.started) && !scheduler_->start_failed()) {
    const auto hung = hung_.find(slot);
    const std::string when = idle ? "while it was starting" : "before it began its first task";
    start_death_ = hung == hung_.end() ? ending.gone.why + " " + when
                                       : "worker " + std::to_string(slot) + ", " + when + ": " + hung->second;
    if (!gone.log.empty()) start_death_ += "\n  its last words:\n" + gone.log;
  }
  ending.task = inputs_.take_all(slot, gone.started);
  const bool from_outside = may_be_from_outside(gone.end) && !gone.broke_channels;
  post(event::WorkerGone{slot, gone.started, from_outside}, std::move(ending));
}

void Supervisor::on_launch(int slot) {
  const bool forks = slot >= 0 && setup_.spec->start_method != StartMethod::kSpawn;
  publish(WorkerStage{slot, forks ? "forking" : "starting Python", wall_now(), true});
}

void Supervisor::on_stage(int slot, std::string_view text) {
  constexpr std::size_t kMostText = 200;
  text = text.substr(0, kMostText);
  if (text.empty()) {
    stages_.erase(slot);
  } else {
    stages_[slot] = text;
  }
  publish(WorkerStage{slot, text, wall_now()});
}

// What ranks share by name begins anew with each attempt: no lock is held, no barrier half full. What a host made while
// it loaded the modules of `preload` stays.
void Supervisor::on_attempt() {
  if (policy_.most_restarts() > 0) engine_->renew_objects();
}

void Supervisor::on_ready(int slot) {
  was_ready_ = true;
  on_stage(slot, "");
  post(event::WorkerReady{slot});
}

void Supervisor::on_start_failed(const std::string& reason) {
  if (launch_error_.empty()) launch_error_ = reason;
  post(event::StartFailed{});
}

void Supervisor::on_process_started(int slot, pid_t pid) {
  if (slot >= 0) {
    slots_[pid] = slot;
  } else {
    hosts_.insert(pid);
  }
  stages_.erase(slot);
  if (slot >= 0) stages_.erase(-1);
  hung_.erase(slot);
  if (slot < 0) on_launch(slot);
  publish(WorkerStarted{slot, pid, slot < 0 ? "host" : role_of(setup_.spec->kind)});
}

void Supervisor::on_process_ended(int slot, pid_t pid, std::string_view role, ProcessEnd end, bool expected) {
  if (slots_.erase(pid) != 0) vital_signs_.process_ended(slot, pid);
  hosts_.erase(pid);
  stages_.erase(slot);
  setup_.watch->expect_end(pid);
  const std::string cpus = slot < 0 ? "" : to_string(cpus_of(*setup_.spec, slot));
  publish(WorkerEnded{slot, pid, role, end, expected, wall_now(), cpus});
  engine_->settle_locks();
}

// --- words ---

int Supervisor::exit_code() const {
  JobEnding ending;
  ending.by_fault = fatal_.has_value();
  ending.launch_failed = scheduler_->start_failed();
  ending.signal = stop_signal_;
  ending.unfinished = scheduler_->stopping() == Cause::kJobLimit || scheduler_->stopping() == Cause::kHang;
  ending.tasks_failed = scheduler_->counts().failed + scheduler_->counts().cancelled > 0;
  // That of another shard, perhaps, while all of ours ended well.
  if (scheduler_->stopping() == Cause::kRankFailed) ending.tasks_failed = true;
  return exit_code_of(ending);
}

void Supervisor::publish(const JobEvent& event) {
  for (Sink* sink : setup_.sinks) sink->on_event(event);
}

void Supervisor::notice(Notice::Kind kind, std::string_view text, LogComponent from) {
  publish(Notice{kind, text, from});
}

// --- time and signals ---

void Supervisor::tick() {
  const Nanos now = monotonic_now();
  if (now - last_tick_ >= kTickEvery) {
    last_tick_ = now;
    if (setup_.shared_tasks != nullptr) setup_.shared_tasks->tick(now);
    const bool stops = scheduler_->stopping() != Cause::kNone || scheduler_->start_failed();
    if (wanted_shared_ > 0 && !stops) read_shared(wanted_shared_);
    meet_shards();
    post(event::Tick{});
  }
  if (stop_by_ && now > *stop_by_) {
    stop_by_.reset();
    post(event::Interrupt{});
  }
  if (now - last_pulse_ < kPulseEvery) return;
  pulse();
  if (!fatal_ && setup_.failure) {
    fatal_ = setup_.failure();
  }
  report_fatal();
  if (fatal_ && scheduler_->stopping() == Cause::kNone) {
    post(event::Interrupt{});
    post(event::Interrupt{});
  }
}

void Supervisor::report_fatal() {
  if (fatal_ && !std::exchange(fatal_reported_, true))
    notice(Notice::Kind::kError, fatal_->message, LogComponent::kRecord);
}

void Supervisor::on_note(const AdapterNote& note) {
  notice(Notice::Kind::kWarning, to_string(note), LogComponent::kLaunch);
}

void Supervisor::on_lost_lock(const SyncLoss& loss) {
  notice(Notice::Kind::kWarning, to_string(loss), LogComponent::kWatch);
}

void Supervisor::on_signals(const std::vector<signalfd_siginfo>& signals) {
  bool child = false;
  bool asked = false;
  for (const signalfd_siginfo& info : signals) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      child = true;
    } else if (number == SIGTSTP) {
      pause_job();
    } else if (number == SIGUSR1) {
      asked = true;
    } else if (number == SIGUSR2 || (number == SIGTERM && setup_.in_batch_job)) {
      on_warning(number);
    } else if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
      const bool first = stop_signal_ == 0;
      if (first) stop_signal_ = number;
      post(event::Interrupt{});
      wound_down_by_ = 0;
      // Done before it is reported, so that a reader can rely on it.
      notice(Notice::Kind::kWarning, first ? "stopping: running tasks may finish; once more kills them" : "killing");
    }
  }
  if (child) reap_children();
  if (asked && setup_.on_user_signal) setup_.on_user_signal();  // takes time: once, however many there were
}

void Supervisor::on_signals_lost(const Error& error) {
  if (!fatal_) fatal_ = error;
  reap_children();
}

// A batch system warns before it ends the job, often more than once. Running tasks end then; what is left is for the
// next session.
void Supervisor::on_warning(int number) {
  if (stop_signal_ != 0) return;
  stop_signal_ = number;
  stop_by_ = monotonic_now() + from_seconds(kWarnedSeconds);
  post(event::Interrupt{});
  notice(Notice::Kind::kWarning, std::string("stopping, as ") + (number == SIGUSR2 ? "SIGUSR2" : "SIGTERM") +
                                     " asks: running tasks may finish; the others are left to the next session");
}

// A worker may have died of a signal that is on its way to us as well.
void Supervisor::await_own_sigterm(const ProcessEnd& end) {
  if (!setup_.in_batch_job || end.signal != SIGTERM || stop_signal_ != 0) return;
  const sigset_t set = signal_set(SIGTERM);
  if (sigtimedwait(&set, nullptr, &kSameSignal) == SIGTERM) on_warning(SIGTERM);
}

// Each child stays a zombie until every part that knows it has learned of its end, so that no pid is reused too early.
void Supervisor::reap_children() {
  for (;;) {
    siginfo_t info{};
    if (uninterrupted([&] { return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT); }) != 0) {
      const bool expects_children = pool_->has_no_hosts() ? !slots_.empty() : !hosts_.empty();
      if (expects_children && !fatal_) fatal_ = system_error("cannot see how processes end", errno);
      return;
    }
    if (info.si_pid == 0) return;
    const ProcessEnd end = end_from_info(info);
    pool_->child_gone(info.si_pid, end);
    uninterrupted([&] { return waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED); });
  }
}

void Supervisor::pause_job() {
  publish(Suspended{});
  const Nanos stopped = monotonic_now();
  signal_descendants(SIGSTOP);
  raise(SIGSTOP);
  signal_descendants(SIGCONT);
  post(event::Resumed{monotonic_now() - stopped});
}

}  // namespace mprun
