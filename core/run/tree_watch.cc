#include "run/tree_watch.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>

#include "base/exit_codes.h"
#include "engine/engine.h"
#include "job/resolve.h"
#include "launch/teardown.h"
#include "os/process.h"
#include "procfs/process_table.h"
#include "run/hang_watch.h"
#include "run/resolve_request.h"
#include "run/user_messages.h"
#include "watch/inspect.h"

namespace mprun {
namespace {

constexpr Nanos kLongestWait = kNanosPerSecond;  // an end may come without an event where there are no pidfds

/// Why a tree cannot be watched.
std::optional<Error> why_not_watched(ProcSource* proc, pid_t root) {
  if (auto error = why_not_seen(proc, root, "watch")) return error;
  const auto tree = process_tree(proc, root, true);
  if (std::find(tree.begin(), tree.end(), getpid()) == tree.end()) return std::nullopt;
  return usage_error("watch: mprun itself is below process " + std::to_string(root) + "; start it somewhere else");
}

class WatchedTrees : private EngineOwner {
 public:
  WatchedTrees(const JobRequest& request, WatchPolicy policy, const Guard& guard)
      : policy_(std::move(policy)),
        verbose_(request.verbose),
        guard_(guard),
        messages_(STDERR_FILENO, request.quiet),
        limits_(raise_open_files()) {}

  Result<int> run(const std::vector<pid_t>& roots) {
    if (auto opened = open(roots); !opened) return opened.error();
    engine_->begin();
    while (!trees_.empty() && !stopped_by_) {
      forget_ended();
      if (trees_.empty()) break;
      if (auto waited = engine_->run_once(time_to_wait()); !waited) return waited.error();
      if (fatal_) return *fatal_;
      messages_.send();
      if (monotonic_now() >= watch_->next_look()) look();
    }
    messages_.finish();
    return stopped_by_ ? exit_code_of_signal(*stopped_by_) : code_;
  }

 private:
  Result<void> open(const std::vector<pid_t>& roots) {
    const auto proc = live_proc();
    for (const pid_t root : roots) {
      auto process = ProcessRef::open(root);  // before it is checked: then it is the one that was checked
      if (const auto error = why_not_watched(proc.get(), root)) return *error;
      if (process) trees_.emplace(root, std::move(*process));
    }
    auto watch = HangWatch::create(policy_, roots);
    if (!watch) return watch.error();
    watch_ = std::move(*watch);
    auto engine = Engine::create({.guard = guard_, .watch = watch_.get()}, this);
    if (!engine) return engine.error();
    engine_ = std::move(*engine);
    for (const auto& [root, process] : trees_) {
      if (verbose_) messages_.say("watches process " + std::to_string(root));
      if (process.pidfd() < 0) continue;
      if (auto added = engine_->loop().add(process.pidfd(), EPOLLIN, [](std::uint32_t) {}); !added) return added;
    }
    return {};
  }

  [[nodiscard]] Nanos time_to_wait() const {
    const Nanos left = std::min(watch_->next_look() - monotonic_now(),
                                messages_.is_waiting() ? UserMessages::kSendAgain : kLongestWait);
    return std::clamp<Nanos>(left, 0, kLongestWait);
  }

  void forget_ended() {
    for (auto tree = trees_.begin(); tree != trees_.end();) {
      if (!tree->second.has_ended()) {
        ++tree;
        continue;
      }
      if (tree->second.pidfd() >= 0) engine_->loop().remove(tree->second.pidfd());
      watch_->forget(tree->first);
      if (verbose_) messages_.say("process " + std::to_string(tree->first) + " has ended");
      tree = trees_.erase(tree);
    }
  }

  void look() {
    const auto finding = watch_->look(monotonic_now());
    if (const auto warning = watch_->take_warning()) messages_.warn(*warning);
    const auto tree = finding ? trees_.find(finding->root) : trees_.end();
    if (tree == trees_.end() || tree->second.has_ended()) return;
    messages_.show_hang(finding->event.text);
    // A hang below the first process is its own affair, as long as that can go on itself.
    const bool is_of_tree = finding->of_all || finding->stuck.count(finding->root) != 0;
    if (finding->is_proved && is_of_tree) engine_->stand_still({finding->root});
    if (policy_.on_hang == OnHang::kKill && is_of_tree) end_tree(tree->second);
  }

  void end_tree(const ProcessRef& root) {
    code_ = kExitUnfinished;
    if (!kill_tree(root)) messages_.warn("not all below process " + std::to_string(root.pid()) + " could be ended");
  }

  void on_signals(const std::vector<signalfd_siginfo>& signals) override {
    for (const signalfd_siginfo& info : signals) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGTSTP) raise(SIGSTOP);
      if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) stopped_by_ = number;
    }
  }
  void on_signals_lost(const Error& error) override { fatal_ = error; }
  void on_note(const AdapterNote& /*note*/) override {}  // nothing that we have started sends any
  void on_lost_lock(const SyncLoss& /*loss*/) override {}

  WatchPolicy policy_;
  bool verbose_;
  const Guard& guard_;
  UserMessages messages_;
  std::optional<rlimit> limits_;  ///< from before: the watch needs many open files
  std::map<pid_t, ProcessRef> trees_;
  std::unique_ptr<HangWatch> watch_;
  std::unique_ptr<Engine> engine_;  ///< after the watch, which outlives it
  std::optional<int> stopped_by_;
  std::optional<Error> fatal_;
  int code_ = kExitOk;
};

}  // namespace

Result<int> watch_trees(const JobRequest& request, const Guard& guard) {
  auto program = resolve_program(request.layer, current_directory());
  if (!program) return program.error();
  return WatchedTrees(request, std::move(program->watch), guard).run(request.pids);
}

}  // namespace mprun
