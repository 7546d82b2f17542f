#include "run/hang_watch.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "json/json.h"
#include "os/file_clock.h"
#include "procfs/process_table.h"
#include "record/atomic_file.h"
#include "report/hang_report.h"
#include "report/inspect_report.h"
#include "report/safe_text.h"
#include "watch/causes/causes.h"
#include "watch/causes/joins.h"
#include "watch/judge/tree_boundary.h"
#include "watch/sample/alarm.h"
#include "watch/sample/trace_access.h"

namespace mprun {
namespace {

/// When this program began: before all that it starts, and so before all that those processes make.
const Nanos kBegun = wall_now();

}  // namespace

Result<std::unique_ptr<HangWatch>> HangWatch::create(WatchPolicy policy, const Guard& guard, std::string run_dir) {
  std::unique_ptr<HangWatch> watch(new HangWatch(std::move(policy), guard.pid, std::move(run_dir)));
  if (auto opened = watch->open(); !opened) return opened.error();
  watch->add({getpid(), false, 0}, [self = watch.get()] { return self->boundary(); });
  wait_for_file_clock(kBegun);  // else a FIFO that the tree makes in its first milliseconds could seem older
  return watch;
}

Result<std::unique_ptr<HangWatch>> HangWatch::create(WatchPolicy policy, const std::vector<pid_t>& roots) {
  std::unique_ptr<HangWatch> watch(new HangWatch(std::move(policy), 0, ""));
  if (auto opened = watch->open(); !opened) return opened.error();
  for (const pid_t root : roots) {
    watch->add({root, true, 0}, [proc = watch->proc_.get(), root] {
      return boundary_of_tree(proc, root, process_tree(proc, root, true));
    });
  }
  return watch;
}

Result<void> HangWatch::open() {
  auto history = ProcessHistory::create(proc_.get());
  if (!history) return history.error();
  history_.emplace(std::move(*history));
  auto deadlines = DeadlineWatch::create(proc_.get());
  if (!deadlines) return deadlines.error();
  deadlines_.emplace(std::move(*deadlines));
  if (const auto problem = access_problem_here(proc_.get())) {
    warning_ = problem->why + "; " + problem->cure;
    sees_nothing_ = problem->is_total;
  }
  return {};
}

void HangWatch::add(WatchedTree::Options tree, const WatchedTree::AskBoundary& boundary) {
  const auto deaths = [this](pid_t parent, Nanos since) {
    const Nanos when = wall_now() - (monotonic_now() - since);
    return WatchedTree::Deaths{history_->violent_deaths(parent, when),
                               history_->violent_deaths_of_forked(parent, when)};
  };
  tree.stall = from_seconds(policy_.stall_seconds);
  watchers_.try_emplace(tree.root, proc_.get(), tree, boundary, deaths, [this](const Sample& sample) { take(sample); });
}

void HangWatch::forget(pid_t root) { watchers_.erase(root); }

Nanos HangWatch::next_look() const {
  Nanos next = std::numeric_limits<Nanos>::max();
  for (const auto& [root, watcher] : watchers_) next = std::min(next, watcher.next_look());
  return sees_nothing_ ? rests_until_ : next;
}

std::optional<std::pair<Proof, pid_t>> HangWatch::find(Nanos now) {
  for (auto& [root, watcher] : watchers_) {
    if (now < watcher.next_look()) continue;
    auto proof = watcher.look(now);
    log_look(root, now);
    if (proof) return std::pair(std::move(*proof), root);
  }
  return std::nullopt;
}

TreeBoundary HangWatch::boundary() {
  TreeBoundary found;
  found.foreign = inodes_held_by(proc_.get(), {getpid(), guard_});
  found.why_alarm_may_come = [this](pid_t pid, pid_t tid) {
    return why_alarm_may_come(proc_.get(), pid, tid, monotonic_now());
  };
  found.begun = kBegun;
  found.sync = sync_;
  found.hosts = outlook_.hosts;
  found.may_start = outlook_.may_start;
  found.forker_of = [this](pid_t child) -> std::optional<TreeBoundary::Forker> {
    const ForkRecord* fork = history_->fork_of(child);
    return fork == nullptr ? std::nullopt : std::optional(TreeBoundary::Forker{fork->parent, fork->parent_tid});
  };
  return found;
}

namespace {

constexpr int kMostAncestors = 64;
constexpr Nanos kHiddenForLong = 2 * kNanosPerSecond;

// "train.py:12 in multiprocessing.pool.Pool.join": the line of the user's code that the thread is at; "" if it has
// none.
std::string place_of(const HungProcess& process, pid_t tid) {
  for (const HungThread& thread : process.threads) {
    const auto named = thread.tid == tid ? name_call(thread.python) : std::nullopt;
    if (!named) continue;
    return named->file + ":" + std::to_string(named->line) + (named->call.empty() ? "" : " in " + named->call);
  }
  return {};
}

std::string place_of(const Hang& hang, pid_t tid) {
  for (const HungProcess& process : hang.processes) {
    if (std::string place = place_of(process, tid); !place.empty()) return place;
  }
  return {};
}

// A process without a place of its own, such as a shell, is stuck at the place of the one that it waits for.
void lend_places(const std::vector<HungProcess>& processes, std::map<pid_t, std::string>* places) {
  for (std::size_t depth = 0; depth < processes.size(); ++depth) {
    for (const HungProcess& process : processes) {
      const auto own = places->find(process.pid);
      const auto parents = places->find(process.parent);
      if (own != places->end() && parents != places->end() && parents->second.empty()) parents->second = own->second;
    }
  }
}

}  // namespace

// Only the watch sees the processes that have no preload library, and how they end.
void HangWatch::take(const Sample& sample) {
  threads_ = sample.threads.size();
  for (const pid_t pid : sample.ended) history_->meet(pid);
  pid_t last = 0;
  for (const ThreadSample& thread : sample.threads) {
    if (thread.pid != last) history_->meet(thread.pid);
    last = thread.pid;
    if (thread.hidden && hidden_ == 0) {
      hidden_ = thread.pid;
      hidden_since_ = monotonic_now();
    }
  }
}

// Only of a process that stays hidden: many programs are hidden for a moment while they start.
void HangWatch::warn_of_hidden(Nanos now) {
  if (warned_of_hidden_ || hidden_ == 0 || now - hidden_since_ < kHiddenForLong) return;
  const pid_t pid = std::exchange(hidden_, 0);
  const Sample sample = take_sample(proc_.get(), {pid});
  if (sample.threads.empty() || !sample.threads.front().hidden) return;
  warned_of_hidden_ = true;
  const AccessProblem problem = access_problem_of(proc_.get(), pid, "mprun");
  warning_ = "mprun may not look at process " + std::to_string(pid) + ": " + problem.why +
             "; hangs of it, and of those that wait for it, cannot be proved: " + problem.cure;
}

HangMonitor::Finding HangWatch::report(const Hang& hang) {
  text_ = hang_text(hang);
  verdict_ = to_string(hang.verdict);
  cause_ = hang.cause.id;
  write(hang);
  Finding finding;
  finding.event = {text_, verdict_, cause_, file_};
  finding.reason = verdict_ + (cause_ == "unknown" ? "" : ", " + cause_ + ": " + hang.cause.explanation);
  return finding;
}

std::optional<HangMonitor::Finding> HangWatch::look(Nanos now) {
  if (sees_nothing_) {
    rests_until_ = now + 3600 * kNanosPerSecond;
    return std::nullopt;
  }
  auto found = find(now);
  warn_of_hidden(now);
  if (!found) return look_at_deadlines(now);
  auto& [proof, root] = *found;
  const Hang hang = explain(&proof, proc_.get(), *history_, now);
  // A stuck part of a program that looks idle may be meant to wait until it is killed, so it is not reported, or only
  // later, as a stall. In a job it is: a worker has a task.
  const bool in_job = !run_dir_.empty();
  const bool was_reported = proof.was_proved && (in_job || !hang.cause.looks_idle);
  const bool unreported = (is_idle(hang) && !in_job) || was_reported || may_be_idle(proof, hang);
  if (unreported) {
    if (is_proved(hang.verdict)) watchers_.at(root).note_idle();
    log_unreported(hang);
    return std::nullopt;
  }
  Finding finding = report(hang);
  finding.root = root;
  finding.is_proved = is_proved(hang.verdict);
  finding.of_all = hang.verdict == HangVerdict::kStalled && (!proof.is_early || proof.is_due);
  if (hang.verdict == HangVerdict::kStalled) return finding;
  for (const pid_t pid : proof.judgement.cannot_return) finding.stuck[pid];
  for (const HungProcess& process : hang.processes) {
    const auto stuck = finding.stuck.find(process.pid);
    if (stuck != finding.stuck.end()) stuck->second = place_of(process, process.pid);
  }
  lend_places(hang.processes, &finding.stuck);
  finding.ends_start = hang.verdict == HangVerdict::kDeadlock;
  return finding;
}

// A deadline concerns the process that has set it, and all above that.
std::optional<HangMonitor::Finding> HangWatch::look_at_deadlines(Nanos now) {
  const auto passed = deadlines_->look(now);
  if (!passed) return std::nullopt;
  const PassedLimit limit{passed->label, to_seconds(passed->limit), passed->pid, passed->tid};
  const Hang hang = explain_overdue(
      limit, proc_.get(), [this] { return boundary(); }, *history_);
  Finding finding = report(hang);
  const std::string place = place_of(hang, passed->tid);
  pid_t above = passed->pid;
  for (int depth = 0; depth < kMostAncestors && above > 1 && above != getpid(); ++depth) {
    finding.stuck[above] = place;
    const auto stat = proc_->read(std::to_string(above) + "/stat");
    above = stat ? parse_stat(*stat).value_or(StatLine{}).parent : 0;
  }
  finding.reason = "the deadline \"" + one_line(limit.label, MPRUN_DEADLINES_LABEL) + "\" has passed";
  finding.ends_start = true;
  return finding;
}

HangMonitor::Finding HangWatch::explain_limit(pid_t pid, const std::string& label, double seconds) {
  const Hang hang = explain_overdue(
      {label, seconds, pid, pid}, proc_.get(), [this] { return boundary(); }, *history_);
  Finding finding = report(hang);
  finding.stuck[pid] = place_of(hang, pid);
  return finding;
}

std::string HangWatch::inspect() {
  return inspect_text(inspect_below(
      proc_.get(), getpid(), [this] { return boundary(); }, *history_));
}

void HangWatch::log_look(pid_t root, Nanos begun) const {
  if (!takes(log_, LogComponent::kWatch, LogLevel::kTrace)) return;
  const auto micros = (monotonic_now() - begun) / 1000;
  log_->write(LogComponent::kWatch, LogLevel::kTrace,
              "looked below " + std::to_string(root) + " for " + std::to_string(micros) + " us; its last sample has " +
                  std::to_string(threads_) + " threads");
}

void HangWatch::log_unreported(const Hang& hang) const {
  if (!takes(log_, LogComponent::kWatch, LogLevel::kDebug)) return;
  log_->write(LogComponent::kWatch, LogLevel::kDebug,
              std::string("not reported, as it may be idle: ") + to_string(hang.verdict) + ", " + hang.cause.id + ": " +
                  hang.cause.explanation);
}

void HangWatch::write(const Hang& hang) {
  const std::string json = indented(hang_json(hang));
  const auto write_to = [this](const std::string& path, const std::string& content) {
    const auto written = write_atomically(path, content, OnDisk::kLater);
    if (!written) text_ += "mprun: warning: " + written.error().message + "\n";
  };
  if (!policy_.hang_report.empty()) write_to(policy_.hang_report, json);
  if (run_dir_.empty()) return;
  std::error_code error;
  std::filesystem::create_directory(run_dir_ + "/hangs", error);
  std::string name;
  do {  // there may be files of an earlier session
    name = "hangs/" + std::to_string(++count_);
  } while (std::filesystem::exists(run_dir_ + "/" + name + ".json", error));
  file_ = name + ".json";
  write_to(run_dir_ + "/" + file_, json);
  write_to(run_dir_ + "/" + name + ".txt", hang_text(hang));
}

}  // namespace mprun
