#include "watch/inspect.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "procfs/process_table.h"
#include "procfs/text_scan.h"
#include "watch/judge/orphaned_lock_watch.h"
#include "watch/judge/tree_boundary.h"
#include "watch/sample/preload_library.h"
#include "watch/sample/syscall_table.h"
#include "watch/sample/trace_access.h"
#include "watch/watcher.h"

namespace mprun {
namespace {

// Together about a second; the last pauses, in which a tree that moves is judged, are longer.
constexpr int kMostSamples = 8;
constexpr const char* kInspect = "inspect";  // the command that messages name
// How long a Watcher looks before the next inspection: a stall of threads that poll takes it about four seconds.
constexpr Nanos kWatchTime = 6 * kNanosPerSecond;
// A loop that polls may not be waiting at the moment of a look. So `live` needs as many in a row that suspect nothing.
constexpr int kCalmLooks = 2;
constexpr const char* kNotKnown =
    "without mprun's preload library it is not known which processes died, which threads forked, what signal handlers "
    "do, and which alarms are set";
constexpr timespec kEarlyPause{0, 80 * kNanosPerMilli}, kLastPause{0, 250 * kNanosPerMilli};

using BoundaryOf = std::function<TreeBoundary(const std::vector<pid_t>& tree)>;

std::optional<StatLine> stat_of(ProcSource* proc, pid_t pid) {
  const auto text = proc->read(std::to_string(pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

// mprun's own process: it runs for as long as it looks.
pid_t self_of(ProcSource* proc) { return parse_id(proc->link("self").value_or("")).value_or(0); }

class Inspector {
 public:
  Inspector(ProcSource* proc, pid_t root, bool with_root, BoundaryOf boundary)
      : proc_(proc), root_(root), with_root_(with_root), self_(self_of(proc)), boundary_(std::move(boundary)) {}

  Inspection inspect(const ProcessHistory& history) {
    Proof found = look();
    found.verdict = found.judgement.is_deadlock()   ? HangVerdict::kDeadlock
                    : found.judgement.stuck.empty() ? HangVerdict::kLive
                                                    : HangVerdict::kPartialDeadlock;
    OrphanedLockWatch locks(proc_);
    locks.consider(*found.sample, monotonic_now());
    found_.suspects_lock = locks.suspects();
    found_.suspects_stall = suspects_stall(found, history);
    found_.hang = describe(&found, proc_, history, monotonic_now());
    if (!can_prove_here()) {
      found_.notes.emplace_back("mprun does not know the system calls of this architecture: nothing can be proved");
    }
    if (hidden_ != 0) {
      found_.notes.push_back(std::to_string(hidden_) + (hidden_ == 1 ? " process" : " processes") +
                             " of the tree may not be looked into (" + std::to_string(first_hidden_) +
                             (hidden_ == 1 ? "" : ", ...") + "): nothing can be proved");
    }
    return std::move(found_);
  }

 private:
  Sample sample() {
    tree_ = process_tree(proc_, root_, with_root_);
    std::vector<pid_t> others = tree_;
    others.erase(std::remove(others.begin(), others.end(), self_), others.end());
    has_self_ = others.size() != tree_.size();
    Sample sample = take_sample(proc_, others);
    count_hidden(others, sample);
    return sample;
  }

  // A process that has no thread in the sample has ended by now, or its threads may not be looked at.
  void count_hidden(const std::vector<pid_t>& tree, const Sample& sample) {
    hidden_ = 0;
    std::set<pid_t> seen;
    for (const ThreadSample& thread : sample.threads) {
      if (!thread.hidden) seen.insert(thread.pid);
    }
    for (const pid_t pid : tree) {
      if (seen.count(pid) != 0 || !stat_of(proc_, pid)) continue;
      if (hidden_++ == 0) first_hidden_ = pid;
    }
  }

  // Like a Watcher: three samples whose still parts agree, each pair judged. If the tree does not stand still, the last
  // ones count.
  Proof look() {
    Sample before = sample();
    std::optional<Proof> last;
    for (int i = 1;; ++i) {
      const bool at_the_end = i + 1 >= kMostSamples || (hidden_ != 0 && i > 2);
      nanosleep(at_the_end ? &kLastPause : &kEarlyPause, nullptr);
      Sample now = sample();
      const bool still = stood_still(before, now);
      if (still || at_the_end) {
        Proof found = judged(marked(before, now));
        const bool agreed = last && found.judgement.agrees_with(last->judgement);
        if (agreed && still) return found;
        if (i >= kMostSamples || (at_the_end && hidden_ != 0)) {
          found_.moving = !still;
          const bool grew = !still && lacks_process(*found.sample, process_tree(proc_, root_, with_root_));
          if (!agreed || grew || hidden_ != 0) call_all_live(&found.judgement);
          return found;
        }
        last = std::move(found);
      } else {
        last.reset();
      }
      before = std::move(now);
    }
  }

  // `now`, with the threads marked that have moved; those that could not be read are left out.
  static Sample marked(Sample before, Sample now) {
    before.whole = now.whole = true;
    return still_part(before, now).value_or(now);
  }

  Proof judged(Sample sample) {
    if (has_self_) {
      ThreadSample self;
      self.pid = self.tid = self_;
      self.state = 'R';
      sample.threads.push_back(self);
    }
    Proof found = judge_sample(proc_, std::make_unique<Sample>(std::move(sample)), boundary_(tree_));
    for (const auto& [pid, process] : found.snapshot->processes()) {
      if (process.threads.empty()) found.judgement.stuck.erase(pid);  // it has ended
    }
    return found;
  }

  [[nodiscard]] bool suspects_stall(const Proof& found, const ProcessHistory& history) const {
    if (found.verdict == HangVerdict::kDeadlock || found_.moving || hidden_ != 0) return false;
    Assumptions assumptions = assumptions_before(kInspectedStall);
    assumptions.no_limit_from = 1;  // what waits with a limit may poll
    assumptions.stopped_stay_stopped = true;
    // Loops that look again and again at what may not change, which a watch finds out.
    for (const pid_t pid : tree_) {
      for (const PythonThread& thread : read_python_progress(proc_, pid).threads) {
        if (thread.awaited) assumptions.own_polls[thread.tid] = {thread.awaited->what, thread.awaited->is_shared};
      }
    }
    const bool any_looks = !assumptions.own_polls.empty();
    auto stall =
        judge_assuming(proc_, std::make_unique<Sample>(*found.sample), boundary_(tree_), std::move(assumptions));
    if (!stall) return false;
    if (any_looks && !is_unawaited_part(stall->judgement)) return true;
    stall->is_early = true;
    return !may_be_idle(*stall, describe(&*stall, proc_, history, monotonic_now()));
  }

  static void call_all_live(Judgement* judgement) {
    for (JudgedThread& thread : judgement->threads) thread.live = true;
    judgement->live.merge(judgement->stuck);
    judgement->stuck.clear();
  }

  ProcSource* proc_;
  pid_t root_;
  bool with_root_;
  pid_t self_;
  BoundaryOf boundary_;
  std::vector<pid_t> tree_;
  bool has_self_ = false;
  int hidden_ = 0;  // of the last sample
  pid_t first_hidden_ = 0;
  Inspection found_;
};

/// Looks at a tree that mprun need not have started as it looks at a job.
class TreeWatch {
 public:
  TreeWatch(ProcSource* proc, pid_t root, const ProcessHistory& history)
      : proc_(proc),
        history_(history),
        watcher_(
            proc, {root, true, kInspectedStall, true},
            [proc, root] { return boundary_of_tree(proc, root, process_tree(proc, root, true)); },
            [](pid_t, Nanos) { return WatchedTree::Deaths(); }) {}

  /// Returns a hang that a watch would report, as soon as there is one.
  std::optional<Hang> look_until(Nanos until) {
    for (Nanos now = monotonic_now(); now < until; now = monotonic_now()) {
      if (auto proof = watcher_.look(now)) {
        Hang hang = describe(&*proof, proc_, history_, now);
        const bool is_stall = hang.verdict == HangVerdict::kStalled && !may_be_idle(*proof, hang);
        if (is_stall || is_proved_hang(hang)) return hang;
      }
      sleep_until(std::min(until, watcher_.next_look()));
    }
    return std::nullopt;
  }

 private:
  static void sleep_until(Nanos when) {
    const Nanos left = std::max<Nanos>(0, when - monotonic_now());
    const timespec pause{left / kNanosPerSecond, left % kNanosPerSecond};
    nanosleep(&pause, nullptr);
  }

  ProcSource* proc_;
  const ProcessHistory& history_;
  Watcher watcher_;
};

// --- what may be in the way ---

/// The number after `name` in the status file of a process or thread.
std::optional<std::uint64_t> status_number(const std::string& status, std::string_view name) {
  const auto at = status.find("\n" + std::string(name) + ":\t");
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* begin = status.data() + at + name.size() + 3;
  const auto [stop, error] = std::from_chars(begin, status.data() + status.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

Error not_permitted(ProcSource* proc, pid_t pid, const StatLine& stat, const std::string& command) {
  const std::string number = std::to_string(pid);
  const AccessProblem problem = access_problem_of(proc, pid, "`mprun " + command + " " + number + "`");
  return access_error(command + ": process " + number + " (" + stat.name + ") may not be looked into: " + problem.why +
                      "; " + problem.cure);
}

Error not_there(pid_t pid, const std::string& command) {
  const std::string number = std::to_string(pid);
  if (kill(pid, 0) == 0 || errno == EPERM) {
    return access_error(
        command + ": process " + number +
        " is there, but /proc does not show it (mounted with hidepid, or not at all); run `sudo mprun " + command +
        " " + number + "`");
  }
  return usage_error(command + ": there is no process " + number);
}

}  // namespace

std::optional<Error> why_not_seen(ProcSource* proc, pid_t pid, const std::string& command) {
  const auto stat = stat_of(proc, pid);
  if (!stat) return not_there(pid, command);
  const auto status = proc->read(std::to_string(pid) + "/status").value_or("");
  const auto group = status_number(status, "Tgid");
  if (group && *group != static_cast<std::uint64_t>(pid)) {
    return usage_error(command + ": " + std::to_string(pid) + " is a thread of process " + std::to_string(*group) +
                       "; run `mprun " + command + " " + std::to_string(*group) + "`");
  }
  if (pid == self_of(proc)) return std::nullopt;
  const Sample sample = take_sample(proc, {pid});
  const bool ended = std::all_of(sample.threads.begin(), sample.threads.end(),
                                 [](const ThreadSample& thread) { return thread.state == 'Z'; });
  const bool sees_none = std::all_of(sample.threads.begin(), sample.threads.end(),
                                     [](const ThreadSample& thread) { return thread.hidden; });
  if (sees_none && stat_of(proc, pid)) return not_permitted(proc, pid, *stat, command);
  if (ended) {
    return usage_error(command + ": process " + std::to_string(pid) + " has ended; its parent, process " +
                       std::to_string(stat->parent) + ", has not asked for its status yet");
  }
  return std::nullopt;
}

namespace {

Result<Inspection> inspect_once(ProcSource* proc, pid_t pid, const ProcessHistory& nothing) {
  if (const auto error = why_not_seen(proc, pid, kInspect)) return *error;
  const auto boundary = [proc, pid](const std::vector<pid_t>& tree) { return boundary_of_tree(proc, pid, tree); };
  Inspection found = Inspector(proc, pid, true, boundary).inspect(nothing);
  if (const auto error = why_not_seen(proc, pid, kInspect)) return *error;  // it has ended meanwhile
  const auto stat = stat_of(proc, pid);
  if (stat && !proc->list(std::to_string(stat->parent) + "/fd")) {
    found.notes.emplace_back("its parent may not be looked into: whatever it has from there counts as the outside");
  }
  return found;
}

bool is_unprepared(ProcSource* proc, const HungProcess& process) {
  return preload_libraries(proc->read(std::to_string(process.pid) + "/maps").value_or("")).empty();
}

// Of a live tree, the threads say why they may go on.
void note_what_is_not_known(ProcSource* proc, Inspection* found) {
  if (found->hang.verdict == HangVerdict::kLive) return;
  const auto& processes = found->hang.processes;
  if (std::any_of(processes.begin(), processes.end(), [proc](const auto& one) { return is_unprepared(proc, one); })) {
    found->notes.emplace_back(kNotKnown);
  }
}

}  // namespace

bool is_sure(const Inspection& inspection) {
  const bool may_hang = inspection.moving || inspection.suspects_lock || inspection.suspects_stall;
  return is_proved_hang(inspection.hang) || !may_hang;
}

Result<Inspection> inspect_process(ProcSource* proc, pid_t pid) { return inspect_patiently(proc, pid, 0); }

Result<Inspection> inspect_patiently(ProcSource* proc, pid_t pid, Nanos patience) {
  auto nothing = ProcessHistory::create(proc);
  if (!nothing) return nothing.error();
  TreeWatch watch(proc, pid, *nothing);
  auto found = inspect_once(proc, pid, *nothing);
  const Nanos until = monotonic_now() + patience;
  for (int calm = 0; found && !is_proved_hang(found->hang) && monotonic_now() < until;) {
    calm = is_sure(*found) ? calm + 1 : 0;
    if (calm == kCalmLooks) break;
    if (calm == 0) {
      if (auto hang = watch.look_until(std::min(until, monotonic_now() + kWatchTime))) {
        if (is_proved_hang(*hang)) found->moving = hang->verdict != HangVerdict::kDeadlock;
        found->hang = std::move(*hang);
        break;
      }
    }
    found = inspect_once(proc, pid, *nothing);
  }
  if (found) note_what_is_not_known(proc, &*found);
  return found;
}

Inspection inspect_below(ProcSource* proc, pid_t root, const WatchedTree::AskBoundary& boundary,
                         const ProcessHistory& history) {
  return Inspector(proc, root, false, [&boundary](const std::vector<pid_t>&) { return boundary(); }).inspect(history);
}

}  // namespace mprun
