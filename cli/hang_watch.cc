#include "hang_watch.h"

#include <unistd.h>

#include <filesystem>

#include "record/atomic_file.h"
#include "report/hang_report.h"
#include "watch/joins.h"

namespace mprun {

Result<std::unique_ptr<HangWatch>> HangWatch::create(WatchPolicy policy, const Guard& guard, std::string run_dir) {
  std::unique_ptr<HangWatch> watch(new HangWatch(std::move(policy), std::move(run_dir)));
  auto family = Family::create(watch->proc_.get());
  if (!family) return family.error();
  watch->family_.emplace(std::move(*family));
  const auto outside = [self = watch.get(), guard = guard.pid] {
    Outside found;
    found.foreign = inodes_held_by(self->proc_.get(), {getpid(), guard});
    found.alarms = self->family_->alarms();
    found.forker_of = [family = &*self->family_](pid_t child) -> std::optional<Outside::Forker> {
      const ForkRecord* fork = family->fork_of(child);
      return fork == nullptr ? std::nullopt : std::optional(Outside::Forker{fork->parent, fork->parent_tid});
    };
    return found;
  };
  const auto deaths = [self = watch.get()](pid_t parent, Nanos since) {
    return self->family_->violent_deaths(parent, wall_now() - (monotonic_now() - since));
  };
  const Watcher::Tree tree{getpid(), false, from_seconds(watch->policy_.stall_seconds)};
  watch->watcher_.emplace(watch->proc_.get(), tree, outside, deaths);
  return watch;
}

namespace {

// The line of the user's code that the first thread is stuck at.
std::string place_of(const HungProcess& process) {
  for (const HungThread& thread : process.threads) {
    const auto named = thread.tid == process.pid ? name_call(thread.python) : std::nullopt;
    if (!named) continue;
    return named->file + ":" + std::to_string(named->line) + (named->call.empty() ? "" : " in " + named->call);
  }
  return {};
}

// A process whose own place says nothing, such as a shell, is stuck where the one is that it waits for.
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

std::optional<HangMonitor::Finding> HangWatch::look(Nanos now) {
  auto proof = watcher_->look(now);
  if (!proof) return std::nullopt;
  const Hang hang = explain(&*proof, proc_.get(), *family_, now);
  // Of a part of a program that no rule knows it cannot be said that it is wrong: perhaps it is meant to wait until it
  // is killed. In a job it is known: a worker has a task.
  const bool in_job = !run_dir_.empty();
  if (hang.verdict == HangVerdict::kPartialDeadlock && hang.cause.id == "unknown" && !in_job) return std::nullopt;
  text_ = hang_text(hang);
  verdict_ = to_string(hang.verdict);
  cause_ = hang.cause.id;
  write(hang);
  Finding finding;
  finding.told = {text_, verdict_, cause_, file_};
  finding.reason = verdict_ + (cause_ == "unknown" ? "" : ", " + cause_ + ": " + hang.cause.explanation);
  if (hang.verdict == HangVerdict::kStalled) return finding;
  if (hang.verdict == HangVerdict::kOrphanedLock) {
    // A process is stuck with its first thread. Beside it others may be what the program can do without.
    for (const OrphanedWait& wait : proof->judgement.orphaned) {
      if (wait.tid == wait.pid) finding.stuck[wait.pid];
    }
    finding.told_only = finding.stuck.empty();
  } else {
    for (const pid_t pid : proof->judgement.stuck) finding.stuck[pid];
  }
  for (const HungProcess& process : hang.processes) {
    const auto stuck = finding.stuck.find(process.pid);
    if (stuck != finding.stuck.end()) stuck->second = place_of(process);
  }
  lend_places(hang.processes, &finding.stuck);
  finding.whole = hang.verdict == HangVerdict::kDeadlock;
  return finding;
}

void HangWatch::write(const Hang& hang) {
  const std::string json = indented(hang_json(hang));
  const auto write_to = [this](const std::string& path, const std::string& content) {
    const auto written = write_atomically(path, content);
    if (!written) text_ += "mprun: warning: " + written.error().message + "\n";
  };
  if (!policy_.hang_report.empty()) write_to(policy_.hang_report, json);
  if (run_dir_.empty()) return;
  std::error_code error;
  std::filesystem::create_directory(run_dir_ + "/hangs", error);
  const std::string name = "hangs/" + std::to_string(++count_);
  file_ = name + ".json";
  write_to(run_dir_ + "/" + file_, json);
  write_to(run_dir_ + "/" + name + ".txt", hang_text(hang));
}

}  // namespace mprun
