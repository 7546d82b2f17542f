#include "run/program_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/process_end.h"
#include "engine/engine.h"
#include "job/resolve.h"
#include "launch/environment.h"
#include "launch/teardown.h"
#include "os/dead_mans_switch.h"
#include "os/fd.h"
#include "os/process.h"
#include "os/uninterrupted.h"
#include "procfs/process_ref.h"
#include "report/safe_text.h"
#include "run/hang_watch.h"
#include "run/installation.h"
#include "run/resolve_request.h"
#include "run/user_messages.h"

namespace mprun {
namespace {

constexpr std::size_t kMostText = 1000;  // of a note
constexpr Nanos kGrace = 5 * kNanosPerSecond;
constexpr int kChanges = WEXITED | WSTOPPED | WCONTINUED;  // of a child

class Program : private EngineOwner {
 public:
  Program(const JobRequest& request, const Guard& guard, ProgramSpec spec, ProgramObserver* observer)
      : argv_(request.program),
        verbose_(request.verbose),
        spec_(std::move(spec)),
        guard_(guard),
        copies_(spec_.copies),
        ports_(copies_ > 1 ? find_free_port() : 0),
        observer_(observer),
        messages_(STDERR_FILENO, request.quiet) {}

  Result<int> run() {
    environment_ = observer_ != nullptr ? observer_->environment : own_environment();
    if (copies_ > 1) add_rank_defaults(&environment_);
    if (auto prepared = prepare_adapters(); !prepared) return prepared.error();
    bool not_executable = false;
    const auto path = environment_.find("PATH");
    const std::string file =
        find_program(argv_[0], path == environment_.end() ? "" : path->second, "", &not_executable);
    if (file.empty()) {
      std::fprintf(stderr, "mprun: %s: %s\n", argv_[0].c_str(),
                   not_executable ? "permission denied" : "command not found");
      return not_executable ? kExitNotExecutable : kExitNotFound;
    }
    // The program is in the process group of mprun's caller. If its parent were in the same session, but in a group of
    // its own, the kernel would take the program's end for that of a shell, and send SIGHUP to a group with a stopped
    // process in it, such as that of a script in CI (setpgid(2): orphaned process groups). So we join, and leave the
    // session.
    const bool joined = setpgid(0, guard_.process_group) == 0;
    const bool started = start_all(file);
    if (started) {
      if (joined) setsid();
      if (observer_ != nullptr) observer_->started = true;
      warn_of_access();
      engine_->begin();
      wait_for_all();
    }
    kill_descendants(kKillSeconds);
    if (started) engine_->take_notes();
    messages_.finish();
    return code_;
  }

 private:
  Result<void> prepare_adapters() {
    auto installation = find_installation();
    if (!installation) return installation.error();
    auto watch = HangWatch::create(spec_.watch, guard_, "");
    if (!watch) return watch.error();
    watch_ = std::move(*watch);
    auto engine = Engine::create({guard_, true, observer_ == nullptr, watch_.get()}, this);
    if (!engine) return engine.error();
    engine_ = std::move(*engine);
    engine_->complete(&installation->adapters);
    add_adapters(&environment_, installation->adapters, spec_.adapters_off);
    folder_ = std::move(installation->folder);
    return {};
  }

  void on_note(const AdapterNote& note) override {
    if (observer_ == nullptr || !observer_->take(note)) messages_.warn(one_line(to_string(note), kMostText));
  }

  void on_lost_lock(const SyncLoss& loss) override { messages_.warn(one_line(to_string(loss), kMostText)); }

  [[nodiscard]] static std::string rank_words(int rank, pid_t pid) {
    return "rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + ")";
  }

  bool start_all(const std::string& file) {
    for (int rank = 0; rank < copies_ && code_ == 0; ++rank) code_ = start(file, rank);
    return code_ == 0;
  }

  int start(const std::string& file, int rank) {
    SpawnPlan plan;
    plan.file = file;
    plan.argv = argv_;
    plan.env = flatten(environment_, copies_ > 1 ? rank_environment(rank, copies_, ports_) : Environment{});
    const int out = observer_ != nullptr && observer_->stdout_to_stderr ? STDERR_FILENO : STDOUT_FILENO;
    plan.fds = {{0, 0}, {out, 1}, {2, 2}};
    for (auto& [ours, number] : plan.fds) {
      if (!guard_.inheritance.standard_descriptors.at(static_cast<std::size_t>(ours))) ours = -1;
    }
    plan.close_others = false;  // as in mprun -- cat <(date)
    plan.open_files = open_files_;
    plan.process_group = guard_.process_group;  // the terminal's foreground group, if we are in it
    plan.inheritance = guard_.inheritance;
    // In case guard and supervisor are killed in one instant. Without the switch all else holds.
    auto tie = make_dead_mans_switch();
    if (tie) plan.dies_with = tie->theirs.get();
    SpawnFailure failure;
    const pid_t pid = spawn_process(plan, &failure);
    if (pid < 0) {
      messages_.say("cannot run " + file + ": " + failure.stage + ": " + std::strerror(failure.error_number));
      return failure.error_number == ENOENT ? kExitNotFound : kExitNotExecutable;
    }
    ranks_[pid] = rank;
    if (verbose_)
      messages_.say(copies_ == 1 ? "started pid " + std::to_string(pid) : rank_words(rank, pid) + " started");
    if (tie) switches_.push_back(std::move(tie->ours));
    return 0;
  }

  void send(int number) const {
    for (const auto& [pid, rank] : ranks_) ProcessRef::of_child(pid).signal(number);
  }

  void wait_for_all() {
    reap();  // a child that ended before the signal could be seen
    while (!ranks_.empty()) {
      if (auto waited = engine_->run_once(time_to_wait()); !waited) {
        give_up(waited.error());
        return;
      }
      messages_.send();
      if (kill_at_ && monotonic_now() >= *kill_at_) send(SIGKILL);
      if (!paused_ && monotonic_now() >= watch_->next_look() && is_hung()) return;
    }
  }

  void on_signals(const std::vector<signalfd_siginfo>& signals) override {
    for (const signalfd_siginfo& info : signals) {
      const int number = static_cast<int>(info.ssi_signo);
      if (!has_reached_program(info)) {
        on_signal(number);
      } else if (paused_ && stops_jobs(number)) {
        guard_.process.signal(stopped_by_);  // one signal to it, if ours came before it had taken the terminal's
      }
    }
  }

  void on_signals_lost(const Error& error) override { give_up(error); }

  // True: the terminal has sent it to the program, too. Until we leave the program's process group it comes to us as
  // well.
  [[nodiscard]] bool has_reached_program(const signalfd_siginfo& info) const {
    if (info.ssi_code == SI_KERNEL) return true;
    return info.ssi_code == SI_QUEUE && info.ssi_int == kFromSharedTerminal &&
           info.ssi_pid == static_cast<std::uint32_t>(guard_.pid);
  }

  // The program's end can no longer be seen: it is ended.
  void give_up(const Error& error) {
    messages_.say(error.message);
    code_ = exit_code_of(error);
    ranks_.clear();
  }

  [[nodiscard]] Nanos time_to_wait() const {
    Nanos left = paused_ ? kNanosPerSecond : watch_->next_look() - monotonic_now();
    if (kill_at_) left = std::min(left, 2 * UserMessages::kSendAgain);
    if (messages_.is_waiting()) left = std::min(left, UserMessages::kSendAgain);
    return std::clamp<Nanos>(left, 0, kNanosPerSecond);
  }

  // Warns of what the watch cannot see.
  void warn_of_access() {
    if (const auto warning = watch_->take_warning()) messages_.warn(*warning);
  }

  // Reports a hang; true: everything is to be ended.
  bool is_hung() {
    const auto finding = watch_->look(monotonic_now());
    warn_of_access();
    if (!finding) return false;
    messages_.show_hang(finding->event.text);
    if (!is_of_program(*finding)) return false;
    if (finding->is_proved) engine_->stand_still(stuck_ranks(*finding));
    if (spec_.watch.on_hang != OnHang::kKill) return false;
    code_ = kExitUnfinished;
    return true;
  }

  // A hang below the program is its own affair, as long as the program can go on itself.
  [[nodiscard]] bool is_of_program(const HangMonitor::Finding& finding) const {
    return finding.of_all || !stuck_ranks(finding).empty();
  }

  [[nodiscard]] std::vector<pid_t> stuck_ranks(const HangMonitor::Finding& finding) const {
    std::vector<pid_t> stuck;
    for (const auto& [pid, rank] : ranks_) {
      if (finding.stuck.count(pid) != 0) stuck.push_back(pid);
    }
    return stuck;
  }

  void on_signal(int number) {
    if (number == SIGCHLD) {
      reap();
      pause_guard();
    } else {
      send(number);
    }
  }

  // The shell looks at the guard, which stops when the program has stopped, not when that is requested: the program may
  // take its time, or ignore it. SIGCONT from the shell reaches the program through the guard again.
  void pause_guard() {
    const bool pauses = !ranks_.empty() && stopped_.size() == ranks_.size();
    if (pauses != paused_) guard_.process.signal(pauses ? stopped_by_ : SIGCONT);
    paused_ = pauses;
  }

  void reap() {
    for (;;) {
      siginfo_t info{};
      if (uninterrupted([&] { return waitid(P_ALL, 0, &info, kChanges | WNOHANG); }) != 0) {
        if (!ranks_.empty()) give_up(system_error("cannot see the program's end", errno));
        return;
      }
      if (info.si_pid == 0) return;
      stopped_.erase(info.si_pid);
      if (info.si_code == CLD_STOPPED && ranks_.count(info.si_pid) != 0 && stops_jobs(info.si_status)) {
        stopped_.insert(info.si_pid);
        stopped_by_ = info.si_status;
      }
      if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED) continue;
      const auto ended = ranks_.extract(info.si_pid);
      if (ended.empty()) continue;  // an orphan of the program
      const ProcessEnd end = end_from_info(info);
      const int code = exit_code_of(end);
      if (code == 0 || code_ != 0) continue;
      code_ = code;
      if (copies_ == 1) continue;
      messages_.say(rank_words(ended.mapped(), info.si_pid) + " ended with " + to_string(end) +
                    "; the others are ended");
      send(SIGTERM);
      kill_at_ = monotonic_now() + kGrace;
    }
  }

  std::vector<std::string> argv_;
  bool verbose_;
  ProgramSpec spec_;
  Fd folder_;
  Guard guard_;
  std::optional<rlimit> open_files_ =
      raise_open_files();  ///< the limits from before: the watch needs many, the program gets its own
  int copies_;
  int ports_;
  ProgramObserver* observer_;
  UserMessages messages_;
  Environment environment_;
  std::map<pid_t, int> ranks_;
  std::set<pid_t> stopped_;   ///< those of ranks_ that a shell would show as stopped jobs
  int stopped_by_ = 0;        ///< the last of their signals
  bool paused_ = false;       ///< the guard is stopped, because all ranks are
  std::vector<Fd> switches_;  ///< DeadMansSwitch::ours, one for each
  std::optional<Nanos> kill_at_;
  std::unique_ptr<HangWatch> watch_;
  std::unique_ptr<Engine> engine_;  ///< after the watch, which outlives it
  int code_ = 0;
};

}  // namespace

Result<int> run_program(const JobRequest& request, const Guard& guard, ProgramObserver* observer) {
  auto program = resolve_program(request.layer, current_directory());
  if (!program) return program.error();
  return Program(request, guard, std::move(*program), observer).run();
}

}  // namespace mprun
